import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { scratchDir } from "../test/support/scratch-dir.ts";
import type { IpamConfig } from "./config/ipam-config.ts";
import { ipamResult, parseResolvConf, readDns } from "./result.ts";

const config = (resolvConf?: string): IpamConfig => ({
  type: "pipette-ipam",
  dataDir: "/none",
  rangeSets: [],
  gateways: [],
  excluded: [],
  reserved: [],
  sticky: false,
  routes: [],
  requested: [],
  cooldownMs: 0,
  ...(resolvConf === undefined ? {} : { resolvConf }),
});

describe("resolv.conf", () => {
  test("adds up servers, searches and options; the last domain counts; nothing is validated", () => {
    const text = [
      "# nameserver 9.9.9.9",
      "; nameserver 9.9.9.9",
      "nameserver 10.0.0.10",
      "  nameserver\tnonsense extra ",
      "domain first.local",
      "search a.local b.local",
      "domain second.local",
      "search c.local",
      "options ndots:5 timeout:1",
      "options rotate",
      "nameserver",
      "sortlist 10.0.0.0",
      "",
    ].join("\r\n");
    expect(parseResolvConf(text)).toEqual({
      nameservers: ["10.0.0.10", "nonsense"],
      domain: "second.local",
      search: ["a.local", "b.local", "c.local"],
      options: ["ndots:5", "timeout:1", "rotate"],
    });
  });

  test("is read for the result", async () => {
    using scratch = scratchDir();
    writeFileSync(`${scratch.path}/resolv.conf`, "nameserver 10.0.0.10\n");
    const from = config(`${scratch.path}/resolv.conf`);
    const result = ipamResult(from, [], await readDns(from));
    expect(result.dns).toMatchObject({ nameservers: ["10.0.0.10"] });
  });

  test("may be left out", async () => {
    expect(await readDns(config())).toEqual({});
  });

  test.each([["/nowhere/resolv.conf"], ["/dev/zero"], ["/tmp"]])("%s is refused with its path", async (path) => {
    await expect(readDns(config(path))).rejects.toMatchObject({
      code: 5,
      message: expect.stringContaining(`"${path}"`),
    });
  });
});
