import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { describeWith } from "../../test/support/requires.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { formatInterval } from "./intervals.ts";
import { type IpamConfig, parseIpamConfig } from "./ipam-config.ts";
import { readSettingsFile, readTrusted } from "./settings-file.ts";

/** A data directory with a settings file of network `net`. */
function setUp(content?: object | string) {
  const scratch = scratchDir();
  const file = `${scratch.path}/net.json`;
  if (content !== undefined)
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content), { mode: 0o600 });
  const read = () => readSettingsFile(scratch.path, "net");
  const parse = async (ipam: object): Promise<IpamConfig> => {
    const settings = await read();
    const conf = new Fields({ ipam: { type: "pipette-ipam", ...ipam } });
    return parseIpamConfig({
      conf,
      network: "net",
      version: "1.0.0",
      args: "",
      ...(settings === undefined ? {} : { settings }),
    });
  };
  return { ...scratch, dataDir: scratch.path, file, read, parse, [Symbol.dispose]: () => scratch[Symbol.dispose]() };
}

describe("a settings file", () => {
  test("that is absent says nothing, nor does a data directory that is", async () => {
    using place = setUp();
    expect(await place.read()).toBeUndefined();
    expect(await readSettingsFile(`${place.dataDir}/none`, "net")).toBeUndefined();
    expect(await readSettingsFile(`${place.dataDir}/none/deeper`, "net")).toBeUndefined();
    // Nor one that is gone between the two looks.
    writeFileSync(place.file, "{}");
    for (const path of ["none", "none/deeper", "net.json/none"])
      expect(await readTrusted(`${place.dataDir}/${path}`)).toBeUndefined();
  });

  test("says what the configuration does not", async () => {
    using place = setUp({
      ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00::/64" }]],
      exclude: ["10.1.0.9"],
      routes: [{ dst: "0.0.0.0/0", mtu: 1400 }],
      Sticky: true,
      cooldownMs: 5,
      unknown: 1,
    });
    const config = await place.parse({});
    expect(config.rangeSets.map(([range]) => formatCidr(range.subnet))).toEqual(["10.1.0.0/24", "fd00::/64"]);
    expect(config.excluded.map(formatInterval)).toEqual(["10.1.0.9"]);
    expect(config).toMatchObject({ sticky: true, cooldownMs: 5, routes: [{ mtu: 1400 }] });
  });

  test("counts less than the configuration, key by key; the single range is one of them", async () => {
    using place = setUp({
      subnet: "10.1.0.0/24",
      rangeStart: "10.1.0.9",
      ranges: [[{ subnet: "fd00::/64" }]],
      sticky: true,
      cooldownMs: 5,
      exclude: ["10.1.0.9"],
    });
    const config = await place.parse({ subnet: "10.2.0.0/24", cooldownMs: 7, exclude: [] });
    expect(config.rangeSets.map(([{ start }]) => formatIp(start))).toEqual(["10.2.0.1", "fd00::1"]);
    expect(config).toMatchObject({ sticky: true, cooldownMs: 7, excluded: [] });
  });

  test.each([
    [{ exclude: ["10.1.0.300"] }, 7, '"exclude[0]" is "10.1.0.300", wanted an address or a block'],
    [{ ranges: [[]] }, 7, '"ranges[0]" is empty, wanted at least one range'],
    [{ ranges: [[{ subnet: "10.1.0.1/24" }]] }, 7, '"ranges[0][0].subnet" is "10.1.0.1/24", wanted "10.1.0.0/24"'],
    [{ subnet: "10.1.0.0/32" }, 7, '"subnet" is "10.1.0.0/32"'],
    [{ sticky: "yes" }, 7, '"sticky" is "yes", wanted true or false'],
    [{ dataDir: "/other" }, 7, '"dataDir" is "/other", wanted no such key: the file lies there'],
    ["", 6, "it is empty, wanted one JSON object"],
    ["[1]", 6, "wanted one JSON object"],
    [`{"a":1}garbage`, 6, "wanted one JSON object"],
    [`{"a":"${"x".repeat(256 * 1024)}"}`, 5, "it is longer than 262144 bytes"],
  ])("%j is refused, by its path", async (content, code, wanted) => {
    using place = setUp(content);
    const error = await place.read().catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code, message: expect.stringContaining(`the settings file "${place.file}": `) });
    expect(error).toMatchObject({ message: expect.stringContaining(wanted) });
  });

  test("that is a link, a directory or writable for others is refused", async () => {
    using place = setUp({ sticky: true });
    symlinkSync(place.file, `${place.dataDir}/link.json`);
    mkdirSync(`${place.dataDir}/directory.json`);
    await expect(readSettingsFile(place.dataDir, "link")).rejects.toMatchObject({
      code: 5,
      message: expect.stringContaining("it is a symbolic link"),
    });
    await expect(readSettingsFile(place.dataDir, "directory")).rejects.toMatchObject({
      message: expect.stringContaining("it is no regular file"),
    });
    chmodSync(place.file, 0o660);
    await expect(place.read()).rejects.toMatchObject({
      message: expect.stringContaining("(mode 660), wanted mode 600"),
    });
    chmodSync(place.file, 0o644);
    expect(await place.read()).toEqual({ sticky: true });
  });
});

describeWith("a settings file of another user", ["root"], () => {
  test("is refused", async () => {
    using place = setUp({ sticky: true });
    chownSync(place.file, 4711, 0);
    await expect(place.read()).rejects.toMatchObject({
      code: 5,
      message: expect.stringContaining("it belongs to user 4711, wanted one of root"),
    });
  });
});
