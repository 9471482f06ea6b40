import { readFileSync, writeFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { Fields } from "../../shared/schema/json-fields.ts";
import { ipamTerminal, usualIpam } from "../../test/support/ipam-terminal.ts";
import { rangeKeys, routeKeys, sectionKeys, strangeKeys, strangeKeyText } from "./strange-keys.ts";

const schemaOf = (file: string) =>
  JSON.parse(readFileSync(new URL(`../../conf/${file}`, import.meta.url), "utf8")) as {
    $defs: Record<string, { additionalProperties?: boolean; properties?: Record<string, unknown> }>;
  };
const [lenient, strict] = [schemaOf("ipam.schema.json"), schemaOf("ipam-strict.schema.json")];
const closed = { ipam: sectionKeys, range: rangeKeys, route: routeKeys };

/** A section with one key too many, where it is, and what it may have been meant as. */
const slips: readonly (readonly [section: object, path: string, near: string | undefined])[] = [
  [{ exlude: ["10.1.0.5"] }, "ipam.exlude", "exclude"],
  [{ ranges: [[{ subnet: "10.1.0.0/24", excldue: [] }]] }, "ipam.ranges[0][0].excldue", "exclude"],
  [
    { ranges: [[{ subnet: "10.1.0.0/24" }, { subnet: "10.2.0.0/24", rangestat: "10.2.0.9" }]] },
    "ipam.ranges[0][1].rangestat",
    "rangeStart",
  ],
  [{ routes: [{ dst: "0.0.0.0/0", gwy: "10.1.0.1" }] }, "ipam.routes[0].gwy", "gw"],
  [{ coolDown: 5 }, "ipam.coolDown", "cooldownMs"],
  [{ stikcy: true }, "ipam.stikcy", "sticky"],
  [{ _comment: "ours" }, "ipam._comment", undefined],
];

const document = (section: object) => ({
  name: "blue",
  cniVersion: "1.0.0",
  type: "bridge",
  ipam: { type: "pipette-ipam", ...section },
});

describe("a key that nobody reads", () => {
  test.each(slips)("%j", (section, path, near) => {
    const found = strangeKeys(new Fields(document(section)));
    expect(found).toEqual([{ path, ...(near === undefined ? {} : { near }) }]);
    const ajv = new Ajv2020({ strict: true, strictRequired: false });
    expect([ajv.compile(lenient)(document(section)), ajv.compile(strict)(document(section))]).toEqual([true, false]);
  });

  test("keys that are known are none, in any case, and nothing of a wrong kind is looked into", () => {
    const sound = { ...usualIpam, NAME: "x", CooldownMs: 1, routes: [{ DST: "::/0", mtu: 1 }], subnet: null };
    for (const section of [sound, { ranges: "x" }, { ranges: [7, [null]] }, { routes: {} }])
      expect(strangeKeys(new Fields(document(section)))).toEqual([]);
    for (const ipam of [undefined, null, "x", []]) expect(strangeKeys(new Fields({ ipam }))).toEqual([]);
  });
});

test("the strict schema is the lenient one, with these keys and no others", () => {
  for (const [name, keys] of Object.entries(closed)) {
    expect(Object.keys(strict.$defs[name]?.properties ?? {}).sort()).toEqual([...keys].sort());
    expect(strict.$defs[name]?.additionalProperties).toBe(false);
    delete strict.$defs[name]?.additionalProperties;
    delete (strict.$defs[name] as { description?: string }).description;
    delete (lenient.$defs[name] as { description?: string }).description;
  }
  expect(strict.$defs).toEqual(lenient.$defs);
});

describe("is named by", () => {
  const misspelt = { ...usualIpam, exlude: ["10.1.0.5"], remark: "ours" };

  test("ipam check --conf, a slip as a warning, another word as a note", async () => {
    using node = ipamTerminal(misspelt);
    await node.allocate("s1");
    writeFileSync(`${node.dataDir}/blue.json`, '{"stiky": true}', { mode: 0o600 });
    const { status, stdout } = await node.run("check", "--conf", node.conf, "--json");
    const { findings } = JSON.parse(stdout) as { findings: { severity: string; code: string; what: string }[] };
    const told = findings
      .filter(({ code }) => code === "unknown-key")
      .map(({ severity, what }) => `${severity}: ${what}`);
    const conf = "and passed over, in the network configuration";
    expect([status, told]).toEqual([
      1,
      [
        `warning: "plugins[1].ipam.exlude" is an unknown key (did you mean "exclude"?) ${conf}`,
        `warning: "stiky" is an unknown key (did you mean "sticky"?) and passed over, in "${node.dataDir}/blue.json"`,
        `note: "plugins[1].ipam.remark" is an unknown key ${conf}`,
      ],
    ]);
    expect((await node.run("check", "--conf", node.conf)).stdout).toContain("2 leases, 0 errors, 2 warnings, 1 note\n");
  });

  test("a sentence", () => {
    expect(strangeKeyText({ path: "ipam.x" })).toBe('"ipam.x" is an unknown key and passed over');
  });
});
