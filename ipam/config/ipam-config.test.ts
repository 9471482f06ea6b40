import { describe, expect, test } from "vitest";
import type { CniVersion } from "../../shared/cni/versions.ts";
import { CniError } from "../../shared/errors.ts";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { dataDirOf, parseAnyRanges, parseIpamConfig } from "./ipam-config.ts";
import type { Range } from "./ranges.ts";

const request = (conf: object, args = "", version: CniVersion = "1.0.0") => ({
  conf: new Fields({ name: "net", ...conf }),
  network: "net",
  version,
  args,
});

const parse = (ipam: object, more: object = {}, args = "", version: CniVersion = "1.0.0") =>
  parseIpamConfig(request({ ipam: { type: "pipette-ipam", ...ipam }, ...more }, args, version));

const parseRanges = (...ranges: object[]) => parse({ ranges: [ranges] });

const shown = (range: Range): string =>
  `${formatCidr(range.subnet)} ${formatIp(range.start)} ${formatIp(range.end)} ${formatIp(range.gateway)}`;

const shownSets = (config: ReturnType<typeof parse>) => config.rangeSets.map((set) => set.map(shown));

function errorOf(run: () => unknown): CniError {
  try {
    run();
  } catch (caught) {
    if (caught instanceof CniError) return caught;
    throw caught;
  }
  throw new Error("Broken invariant: this must fail");
}

describe("a range", () => {
  test.each([
    [{ subnet: "10.1.2.0/24" }, "10.1.2.0/24 10.1.2.1 10.1.2.254 10.1.2.1"],
    [{ subnet: "10.1.2.0/30" }, "10.1.2.0/30 10.1.2.1 10.1.2.2 10.1.2.1"],
    [{ subnet: "fd00:1::/64" }, "fd00:1::/64 fd00:1::1 fd00:1::ffff:ffff:ffff:ffff fd00:1::1"],
    [{ subnet: "fd00::/126" }, "fd00::/126 fd00::1 fd00::3 fd00::1"],
    [{ subnet: "10.0.0.0/8", rangeStart: "10.9.0.5" }, "10.0.0.0/8 10.9.0.5 10.255.255.254 10.0.0.1"],
    [
      { subnet: "10.1.2.0/24", rangeStart: "10.1.2.0", rangeEnd: "10.1.2.255" },
      "10.1.2.0/24 10.1.2.0 10.1.2.255 10.1.2.1",
    ],
    [{ subnet: "10.1.2.0/24", rangeStart: "", rangeEnd: "", gateway: "" }, "10.1.2.0/24 10.1.2.1 10.1.2.254 10.1.2.1"],
    [{ subnet: "10.1.2.0/24", gateway: "10.1.2.254" }, "10.1.2.0/24 10.1.2.1 10.1.2.254 10.1.2.254"],
    // Neither the subnet nor even the family binds a gateway.
    [{ subnet: "10.1.2.0/24", gateway: "192.168.0.1" }, "10.1.2.0/24 10.1.2.1 10.1.2.254 192.168.0.1"],
    [{ subnet: "10.1.2.0/24", gateway: "fe80::1" }, "10.1.2.0/24 10.1.2.1 10.1.2.254 fe80::1"],
    [{ SUBNET: "10.1.2.0/24", RangeStart: "10.1.2.9" }, "10.1.2.0/24 10.1.2.9 10.1.2.254 10.1.2.1"],
    [{ subnet: "10.1.2.0/24", unknown: 7, rangeStart: null }, "10.1.2.0/24 10.1.2.1 10.1.2.254 10.1.2.1"],
  ])("%j", (range, wanted) => {
    expect(shownSets(parseRanges(range))).toEqual([[wanted]]);
  });

  test.each([
    [{}, '"ipam.ranges[0][0].subnet" is missing, wanted a network'],
    [{ rangeStart: "10.1.2.3" }, '"ipam.ranges[0][0].subnet" is missing'],
    [{ subnet: "" }, '"ipam.ranges[0][0].subnet" is "", wanted a network'],
    [{ subnet: "10.1.2.0" }, '"ipam.ranges[0][0].subnet" is "10.1.2.0", wanted a network'],
    [{ subnet: "010.1.2.0/24" }, '"ipam.ranges[0][0].subnet" is "010.1.2.0/24"'],
    [{ subnet: 7 }, '"ipam.ranges[0][0].subnet" is 7, wanted a string'],
    [{ subnet: "10.1.2.0/31" }, '"10.1.2.0/31", wanted a network with an address to give, /30 or larger'],
    // The size is looked at before the host bits.
    [{ subnet: "10.1.2.1/32" }, "wanted a network with an address to give, /30 or larger"],
    [{ subnet: "fd00::/127" }, "wanted a network with an address to give, /126 or larger"],
    [{ subnet: "::ffff:10.1.2.0/120" }, '"::ffff:10.1.2.0/120", wanted a network'],
    [{ subnet: "10.1.2.3/24" }, '"10.1.2.3/24", wanted "10.1.2.0/24", without host bits'],
    [{ subnet: "fd00::1/64" }, 'wanted "fd00::/64", without host bits'],
    [
      { subnet: "10.1.2.0/24", rangeStart: "10.1.3.1" },
      'rangeStart" is "10.1.3.1", wanted an address in "10.1.2.0/24"',
    ],
    [{ subnet: "10.1.2.0/24", rangeStart: "fd00::1" }, 'rangeStart" is "fd00::1", wanted an address in'],
    [{ subnet: "10.1.2.0/24", rangeEnd: "10.1.1.255" }, 'rangeEnd" is "10.1.1.255", wanted an address in'],
    [
      { subnet: "10.1.2.0/24", rangeStart: "10.1.2.9", rangeEnd: "10.1.2.8" },
      'rangeStart" is "10.1.2.9", wanted "10.1.2.8" or lower',
    ],
    [{ subnet: "10.1.2.0/24", rangeStart: "10.1.2.09" }, 'rangeStart" is "10.1.2.09", wanted an IPv4 or IPv6 address'],
    [{ subnet: "10.1.2.0/24", gateway: "10.1.2.1/24" }, 'gateway" is "10.1.2.1/24", wanted an IPv4 or IPv6 address'],
    [{ subnet: "10.1.2.0/24", gateway: ["10.1.2.1"] }, 'gateway" is an array, wanted a string'],
  ])("%j is refused", (range, wanted) => {
    const error = errorOf(() => parseRanges(range));
    expect(error.code).toBe(7);
    expect(error.message).toContain(wanted);
  });
});

describe("range sets", () => {
  test("come from the runtime first, then the one at the top, then the list", () => {
    const config = parse(
      {
        subnet: "10.2.0.0/24",
        rangeStart: "10.2.0.9",
        ranges: [[{ subnet: "10.3.0.0/24" }], [{ subnet: "10.4.0.0/24" }]],
      },
      { runtimeConfig: { ipRanges: [[{ subnet: "10.1.0.0/24" }]] } },
    );
    expect(config.rangeSets.map((set) => formatIp(set[0].start))).toEqual([
      "10.1.0.1",
      "10.2.0.9",
      "10.3.0.1",
      "10.4.0.1",
    ]);
  });

  test("may split one subnet in windows", () => {
    const subnet = "10.1.2.0/24";
    const config = parse({
      ranges: [
        [
          { subnet, rangeEnd: "10.1.2.99" },
          { subnet, rangeStart: "10.1.2.150" },
        ],
        [{ subnet, rangeStart: "10.1.2.100", rangeEnd: "10.1.2.149" }],
      ],
    });
    expect(shownSets(config)).toHaveLength(2);
  });

  test("ignore the keys beside a missing subnet at the top", () => {
    const config = parse({ rangeStart: "nonsense", gateway: 7, ranges: [[{ subnet: "10.3.0.0/24" }]] });
    expect(config.rangeSets).toHaveLength(1);
  });

  test.each([
    [{ ranges: [] }, "it names no addresses"],
    [{}, "it names no addresses"],
    [{ rangeStart: "10.1.2.3" }, "it names no addresses"],
    [{ ranges: [[]] }, '"ipam.ranges[0]" is empty, wanted at least one range'],
    [{ ranges: [{ subnet: "10.1.2.0/24" }] }, '"ipam.ranges[0]" is an object, wanted an array of ranges'],
    [{ ranges: [[null]] }, '"ipam.ranges[0][0]" is null, wanted an object'],
    [{ ranges: {} }, '"ipam.ranges" is {}, wanted an array'],
    [{ ranges: Array(1025).fill([{}]) }, '"ipam.ranges" is 1025 ranges long, wanted 1024 at most'],
    [{ ranges: [Array(1024).fill({}), [{}]] }, '"ipam.ranges" is 1025 ranges long, wanted 1024 at most'],
    [{ ranges: [[{ subnet: "10.1.0.0/24" }, { subnet: "fd00::/64" }]] }, "wanted ranges of one address family"],
    [
      { ranges: [[{ subnet: "10.1.0.0/24" }, { subnet: "10.1.0.0/25" }]] },
      "10.1.0.1-10.1.0.254 and 10.1.0.1-10.1.0.126, wanted ranges that do not overlap",
    ],
    [
      { subnet: "10.1.0.0/24", ranges: [[{ subnet: "10.2.0.0/24" }], [{ subnet: "10.1.0.0/16" }]] },
      "range set 0, 10.1.0.1-10.1.0.254, and range set 2, 10.1.0.1-10.1.255.254, overlap, wanted every address in one set",
    ],
  ])("%j is refused", (ipam, wanted) => {
    const error = errorOf(() => parse(ipam));
    expect(error.code).toBe(7);
    expect(error.message).toContain(wanted);
  });

  test("two of a family need a result that has room for them", () => {
    const two = { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "10.2.0.0/24" }]] };
    const both = { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00::/64" }]] };
    expect(errorOf(() => parse(two, {}, "", "0.2.0")).message).toContain(
      'two IPv4 addresses, wanted one at most with "cniVersion" "0.2.0"',
    );
    expect(parse(both, {}, "", "0.2.0").rangeSets).toHaveLength(2);
    expect(parse(two, {}, "", "0.3.0").rangeSets).toHaveLength(2);
  });

  test("may be missing where the runtime brings them later", () => {
    expect(parseAnyRanges(request({ ipam: {} })).rangeSets).toEqual([]);
  });
});

describe("requested addresses", () => {
  const ranges = { ranges: [[{ subnet: "10.1.2.0/24" }]] };

  test("come from all three sources, each once, without prefix", () => {
    const more = {
      args: { cni: { ips: ["10.1.2.8/24", "10.1.2.7"] } },
      runtimeConfig: { ips: ["10.1.2.9", "::ffff:10.1.2.8"] },
    };
    const config = parse(ranges, more, "IgnoreUnknown=1;K8S_POD_NAME=a;IP=10.1.2.7/16");
    expect(config.requested.map(formatIp)).toEqual(["10.1.2.7", "10.1.2.8", "10.1.2.9"]);
  });

  test.each([["IP="], [""], ["IgnoreUnknown=TRUE;X=1"], ["IgnoreUnknown=1;ip=10.1.2.7"]])(
    "%j asks for none",
    (args) => {
      expect(parse(ranges, {}, args).requested).toEqual([]);
    },
  );

  test.each([
    ["K8S_POD_NAME=a", 4, '"K8S_POD_NAME" is unknown, wanted IgnoreUnknown=1'],
    ["IgnoreUnknown=0;A=1;B=2", 4, '"A", "B" is unknown'],
    ["IgnoreUnknown=maybe;A=1", 4, 'IgnoreUnknown is "maybe", wanted 1, true, 0 or false'],
    ["IP=10.1.2.7;", 4, "part 2 has no KEY=, wanted KEY=VALUE"],
    ["IP=a=b", 4, 'part 1 has more than one "=" (key "IP"), wanted KEY=VALUE'],
    ["IP=10.1.2.300", 4, 'IP is "10.1.2.300", wanted an IPv4 or IPv6 address'],
    ["IP=10.1.2.3/33", 4, 'IP is "10.1.2.3/33"'],
    ["IP=10.1.2.3/0x18", 4, 'IP is "10.1.2.3/0x18"'],
  ])("CNI_ARGS %j is refused", (args, code, wanted) => {
    const error = errorOf(() => parse(ranges, {}, args));
    expect(error.code).toBe(code);
    expect(error.message).toContain(wanted);
  });

  test.each([
    [{ runtimeConfig: { ips: [""] } }, '"runtimeConfig.ips[0]" is "", wanted an IPv4 or IPv6 address'],
    [{ runtimeConfig: { ips: [null] } }, '"runtimeConfig.ips[0]" is null'],
    [{ runtimeConfig: { ips: "10.1.2.3" } }, '"runtimeConfig.ips" is "10.1.2.3", wanted an array'],
    [{ args: { cni: { ips: [7] } } }, '"args.cni.ips[0]" is 7'],
    [{ args: "x" }, '"args" is "x", wanted an object'],
    [
      { runtimeConfig: { ips: Array(65).fill("10.1.2.3") } },
      '"runtimeConfig.ips" is 65 addresses long, wanted 64 at most',
    ],
  ])("%j is refused", (more, wanted) => {
    const error = errorOf(() => parse(ranges, more));
    expect(error.code).toBe(7);
    expect(error.message).toContain(wanted);
  });
});

describe("the rest of the section", () => {
  const ranges = [[{ subnet: "10.1.2.0/24" }]];

  test("keeps every field of a route, with its host bits", () => {
    const route = { dst: "10.9.9.9/8", gw: "10.1.2.1", mtu: 1400, advmss: 1300, priority: 5, table: 100, scope: 253 };
    const [parsed] = parse({ ranges, routes: [route] }).routes;
    expect(parsed).toMatchObject({ mtu: 1400, advmss: 1300, priority: 5, table: 100, scope: 253 });
    expect(formatCidr(parsed!.dst)).toBe("10.9.9.9/8");
  });

  test("has defaults", () => {
    const config = parse({ ranges });
    expect(config.dataDir).toBe("/var/lib/pipette");
    expect(config.cooldownMs).toBe(30_000);
    expect(config).not.toHaveProperty("resolvConf");
  });

  test.each([
    [{ dataDir: "relative/dir" }, '"ipam.dataDir" is "relative/dir", wanted an absolute path'],
    [{ dataDir: 5 }, '"ipam.dataDir" is 5, wanted a string'],
    [{ resolvConf: "etc/resolv.conf" }, '"ipam.resolvConf" is "etc/resolv.conf", wanted an absolute path'],
    [{ resolvConf: "/etc/\0" }, "wanted an absolute path"],
    [{ cooldownMs: -1 }, '"ipam.cooldownMs" is -1, wanted a whole number'],
    [{ cooldownMs: 1.5 }, '"ipam.cooldownMs" is 1.5'],
    [{ routes: [{ gw: "10.1.2.1" }] }, '"ipam.routes[0].dst" is missing'],
    [{ routes: ["10.0.0.0/8"] }, '"ipam.routes[0]" is "10.0.0.0/8", wanted an object'],
  ])("%j is refused", (ipam, wanted) => {
    const error = errorOf(() => parse({ ranges, ...ipam }));
    expect(error.code).toBe(7);
    expect(error.message).toContain(wanted);
  });

  test.each([[{}], [{ ipam: null }]])("%j lacks it", (conf) => {
    expect(errorOf(() => parseIpamConfig(request(conf))).message).toContain('"ipam" is missing');
  });

  test("the data directory is found in a configuration that no ADD would take", () => {
    const conf = { name: "n", ipam: { dataDir: "/x", ranges: "nonsense", routes: 7, resolvConf: "rel" }, args: 3 };
    expect(dataDirOf(new Fields(conf))).toBe("/x");
    expect(dataDirOf(new Fields({ name: "n" }))).toBe("/var/lib/pipette");
    expect(() => dataDirOf(new Fields({ ipam: { dataDir: "x" } }))).toThrow("wanted an absolute path");
  });
});
