import { readdirSync, readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { wrongNetworkName } from "../../shared/cni/names.ts";
import { parseVersion } from "../../shared/cni/versions.ts";
import { CniError } from "../../shared/errors.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { Fields, show } from "../../shared/schema/json-fields.ts";
import { random } from "../../test/support/random.ts";
import { parseIpamConfig } from "./ipam-config.ts";

const conf = new URL("../../conf/", import.meta.url);
const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true });
const schema = JSON.parse(readFileSync(new URL("ipam.schema.json", conf), "utf8"));
const validate = ajv.compile(schema);

/** What is wrong by the parsers that a call goes through; `undefined` where nothing is. */
function refusal(document: Readonly<Record<string, unknown>>): string | undefined {
  try {
    const fields = new Fields(document);
    const version = parseVersion(fields.string("cniVersion") ?? "");
    if (version === undefined) return "cniVersion";
    const network = fields.string("name");
    if (network === undefined || wrongNetworkName(network) !== undefined) return "name";
    parseIpamConfig({ conf: fields, network, version, args: "" });
    return undefined;
  } catch (caught) {
    if (caught instanceof CniError) return caught.message;
    throw caught;
  }
}

type Next = ReturnType<typeof random>;
const pick = <T>(next: Next, from: readonly T[]): T => from[next(from.length)] as T;

/** Values that will not do for a key, in ways that a schema can tell. */
const wrong: Readonly<Record<string, readonly unknown[]>> = {
  cniVersion: ["1.0", "2.0.0", 1],
  name: ["", "-a", "a/b", "ä", "x".repeat(81), 7],
  ipam: ["x", []],
  runtimeConfig: [[], 7],
  args: ["x", []],
  cni: ["x"],
  subnet: [
    "",
    "10.0.0.0",
    "10.0.0.0/31",
    "10.0.0.0/33",
    "010.0.0.0/8",
    "10.0.0.0/08",
    "fd00::/127",
    "fd00::1::/64",
    "x/8",
    7,
    [],
  ],
  rangeStart: ["10.0.0", "10.0.0.0.1", "10.0.0.256", "10.0.0.01", "fd00:::1", "fd00::1%eth0", " 10.0.0.1", 7],
  rangeEnd: ["x", "10.0.0.1/24", true],
  gateway: ["x", "::g", "1:2:3:4:5:6:7", ["10.0.0.1"]],
  exclude: [
    "10.0.0.1",
    [7],
    [""],
    ["10.0.0.1-10.0.0.2"],
    ["10.0.0.1/33"],
    [null],
    ["fd00::/129"],
    Array(1025).fill("10.0.0.0/8"),
  ],
  ips: ["10.0.0.1", Array(65).fill("10.0.0.1"), [""], [null], ["10.0.0.1/33"], [{}]],
  routes: [
    {},
    ["10.0.0.0/8"],
    [{}],
    [{ dst: "10.0.0.0" }],
    [{ dst: "10.0.0.0/8", gw: "x" }],
    [{ dst: "::/0", mtu: -1 }],
    [{ dst: "::/0", table: 1.5 }],
    [{ dst: "::/0", scope: 2 ** 32 }],
  ],
  dataDir: ["relative", "./x", 7],
  resolvConf: ["relative", "a\u0000", {}],
  cooldownMs: [-1, 1.5, "1", 86_400_001],
  sticky: ["true", 1],
  ranges: [
    {},
    "x",
    Array(1025).fill([]),
    [Array(1025).fill({})],
    [[]],
    [{}],
    [null],
    [[null]],
    [[{}]],
    [["10.0.0.0/8"]],
  ],
  ipRanges: [{}, [[]], [[{}]]],
};

/** A configuration that is right, with every key now and then; what no schema can tell is right by the way it is made. */
function rightConf(next: Next): Record<string, unknown> {
  let subnets = 0;
  const range = (): Record<string, unknown> => {
    const n = ++subnets;
    const four = next(3) > 0;
    const at = (host: number): string => (four ? `10.${n}.0.${host}` : `fd00:${n}::${host.toString(16)}`);
    return some(next, {
      subnet: four ? `10.${n}.0.0/${16 + next(9)}` : `fd00:${n}::/${pick(next, [64, 112, 120])}`,
      rangeStart: pick(next, [at(2 + next(9)), ""]),
      rangeEnd: pick(next, [at(20 + next(9)), ""]),
      gateway: pick(next, [at(1), "192.168.0.1", "fe80::1", ""]),
      exclude: pick(next, [[], [at(5)], [at(5), four ? `10.${n}.0.16/28` : `fd00:${n}::10/124`]]),
      unknown: next(9),
    });
  };
  const sets = (): readonly (readonly object[])[] => Array.from({ length: next(3) }, () => [range()]);
  const first = range();
  const ipam = some(next, {
    type: "pipette-ipam",
    subnet: undefined,
    ranges: [[first], ...sets()],
    routes: [
      { dst: "0.0.0.0/0" },
      some(next, {
        dst: "fd00::9/64",
        gw: pick(next, ["fd00::1", ""]),
        mtu: 1400,
        advmss: 0,
        priority: 5,
        table: 2 ** 32 - 1,
        scope: 0,
      }),
    ],
    dataDir: pick(next, ["/var/lib/x", ""]),
    resolvConf: pick(next, ["/etc/resolv.conf", ""]),
    cooldownMs: pick(next, [0, 1, 86_400_000]),
    sticky: next(2) === 0,
    exclude: pick(next, [[], [first["subnet"]]]),
  });
  if (next(4) === 0) Object.assign(ipam, range(), { exclude: [] });
  return some(next, {
    name: pick(next, ["net", "a", "A-1_b.c", "x".repeat(80)]),
    cniVersion: pick(next, ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]),
    ipam,
    runtimeConfig: some(next, { ips: ["10.1.0.9/24", "fd00::9"], ipRanges: sets() }),
    args: { cni: { ips: ["10.1.0.9"] } },
    "cni.dev/x": 1,
  });
}

/** Some of the keys; always what a configuration cannot do without. */
function some(next: Next, all: Record<string, unknown>): Record<string, unknown> {
  const kept = ["name", "cniVersion", "ipam", "type", "ranges", "subnet", "dst"];
  return Object.fromEntries(
    Object.entries(all).filter(([key, value]) => value !== undefined && (kept.includes(key) || next(2) === 0)),
  );
}

/** Every place in the document that has a key of this name. */
function placesOf(value: unknown, key: string): readonly Record<string, unknown>[] {
  if (typeof value !== "object" || value === null) return [];
  const here = !Array.isArray(value) && Object.hasOwn(value, key) ? [value as Record<string, unknown>] : [];
  return [...here, ...Object.values(value).flatMap((inner) => placesOf(inner, key))];
}

const keys = Object.keys(wrong);

describe("the schema of the configuration and its parser", () => {
  test.each([1, 2, 3])("agree on 1500 configurations, right and wrong: seed %i", (seed) => {
    const next = random(seed);
    const seen = { right: 0, wrong: new Set<string>() };
    for (let round = 0; round < 1500; round++) {
      const document = rightConf(next);
      const key = next(4) === 0 ? undefined : pick(next, keys);
      const places = key === undefined ? [] : placesOf(document, key);
      if (key !== undefined && places.length > 0) pick(next, places)[key] = pick(next, wrong[key] ?? []);
      const refused = refusal(document);
      const is = JSON.stringify(document);
      expect({ is, valid: validate(document), refused }).toMatchObject({ valid: refused === undefined });
      if (refused === undefined) seen.right++;
      else seen.wrong.add(key ?? "");
    }
    expect(seen.right).toBeGreaterThan(300);
    expect([...seen.wrong].toSorted()).toEqual(keys.toSorted());
  });

  test.each(keys.flatMap((key) => (wrong[key] ?? []).map((value) => [key, show(value), value] as const)))(
    "refuse %s %s",
    (key, _shown, value) => {
      const range = { subnet: "10.0.0.0/24", rangeStart: "", rangeEnd: "", gateway: "", exclude: [] };
      const document: Record<string, unknown> = {
        name: "net",
        cniVersion: "1.0.0",
        ipam: {
          type: "pipette-ipam",
          ranges: [[range]],
          routes: [],
          dataDir: "",
          resolvConf: "",
          cooldownMs: 0,
          sticky: true,
        },
        runtimeConfig: { ips: [], ipRanges: [] },
        args: { cni: {} },
      };
      expect([validate(document), refusal(document)]).toEqual([true, undefined]);
      for (const place of placesOf(document, key)) place[key] = value;
      expect([validate(document), refusal(document) === undefined]).toEqual([false, false]);
    },
  );

  test.each([1, 2])("agree on what an address is: seed %i", (seed) => {
    const address = ajv.compile({ ...schema.$defs.address });
    const next = random(seed);
    const part = (): string =>
      pick(next, ["0", "1", "ffff", "10.0.0.1", "g", "12345", "", "00", "255", "256", "1.2.3"]);
    let right = 0;
    for (let round = 0; round < 4000; round++) {
      const groups = Array.from({ length: 1 + next(9) }, () =>
        next(12) === 0 ? part() : pick(next, ["0", "a", "ffff"]),
      );
      if (next(2) === 0) groups.splice(next(groups.length), 1 + next(3), "");
      const text =
        next(4) === 0
          ? Array.from({ length: 3 + next(3) }, part).join(".")
          : `${pick(next, ["", "", ":", "::"])}${groups.join(":")}`;
      expect({ text, valid: address(text) }).toEqual({ text, valid: parseIp(text) !== undefined });
      if (parseIp(text) !== undefined) right++;
    }
    expect(right).toBeGreaterThan(300);
  });

  test("differ where only the parser can tell: then the schema takes it", () => {
    for (const ranges of [
      [[{ subnet: "10.0.0.1/24" }]],
      [[{ subnet: "10.0.0.0/24", rangeStart: "10.1.0.1" }]],
      [[{ subnet: "10.0.0.0/24" }], [{ subnet: "10.0.0.0/25" }]],
      [[{ subnet: "10.0.0.0/24" }, { subnet: "fd00::/64" }]],
      [[{ subnet: "10.0.0.0/24", exclude: ["10.1.0.1"] }]],
    ]) {
      const document = { name: "net", cniVersion: "1.0.0", ipam: { type: "pipette-ipam", ranges } };
      expect([validate(document), refusal(document)]).toEqual([true, expect.stringContaining("wanted")]);
    }
  });
});

test.each(readdirSync(conf).filter((name) => name.endsWith(".conflist")))("the schema takes the sample %s", (name) => {
  const list = JSON.parse(readFileSync(new URL(name, conf), "utf8"));
  expect([validate(list), validate.errors]).toEqual([true, null]);
  list.plugins[0].ipam.ranges = [];
  expect(validate(list)).toBe(true);
  list.plugins[0].ipam.ranges = [[]];
  expect(validate(list)).toBe(false);
});

test("the section of another IPAM plugin is its own business", () => {
  expect(validate({ name: "net", ipam: { type: "dhcp", ranges: 7 } })).toBe(true);
});
