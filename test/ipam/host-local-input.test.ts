import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { callInProcess, dual, five, ipamNode, type Rule } from "./in-process.ts";

const one = (range: object) => ({ ranges: [[range]] });
const subnet = "10.0.0.0/24";

/** What `pipette-ipam` takes in, beside what host-local does with the same. Where they differ the sentence says so. */
const rules: readonly Rule[] = [
  [
    1,
    "variables that the verb needs and that are missing are named, all at once",
    async (node) => {
      const env = { CNI_CONTAINERID: "", CNI_IFNAME: "" };
      expect(await node.refused("DEL", five, { env })).toContain(
        "4: Cannot read the environment: CNI_CONTAINERID, CNI_IFNAME are missing",
      );
      expect(await node.refused("ADD", five, { env: { CNI_CONTAINERID: "a/b" } })).toContain(
        'CNI_CONTAINERID is "a/b"',
      );
      // Differs: nobody needs CNI_PATH but GC, which may have to delegate.
      await node.add(five, { env: { CNI_PATH: "" } });
    },
  ],
  [
    2,
    "a namespace is wanted for ADD and CHECK, though nothing is done with it; not for DEL",
    async (node) => {
      const env = { CNI_NETNS: "" };
      for (const verb of ["ADD", "CHECK"])
        expect(await node.refused(verb, five, { env })).toContain(
          "4: Cannot read the environment: CNI_NETNS is missing",
        );
      expect(await node.call("DEL", five, { env })).toMatchObject({ status: 0 });
    },
  ],
  [
    3,
    "a verb that is none, with a configuration that is none, is an error of the first (differs: host-local says the second)",
    async () => {
      expect(await callInProcess({ CNI_COMMAND: "PUT" }, "{")).toMatchObject({ status: 1, out: { code: 4 } });
    },
  ],
  [
    4,
    "without a verb it tells about itself on stderr and ends well; verbs are upper case",
    async (node) => {
      const root = fileURLToPath(new URL("../..", import.meta.url));
      const { CNI_COMMAND: _, ...env } = process.env;
      const told = spawnSync(process.execPath, ["main.ts"], {
        cwd: root,
        argv0: "pipette-ipam",
        env,
        encoding: "utf8",
      });
      expect({ status: told.status, stdout: told.stdout }).toEqual({ status: 0, stdout: "" });
      expect(told.stderr).toContain(
        "CNI IPAM plugin\nCNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0",
      );
      expect(await node.refused("add", five)).toContain(
        '4: Cannot read the environment: CNI_COMMAND is "add", wanted one of ADD',
      );
    },
  ],
  [
    5,
    "cniVersion is one of the list to the letter; none is 0.1.0",
    async (node) => {
      for (const cniVersion of ["1.0", "2.0.0", "v1.0.0"])
        expect(await node.refused("ADD", five, { top: { cniVersion } })).toContain(
          `1: Cannot serve the network configuration: "cniVersion" is "${cniVersion}", wanted one of 0.1.0, `,
        );
      expect((await node.call("ADD", five, { top: { cniVersion: "" } })).out).toMatchObject({
        cniVersion: "0.1.0",
        ip4: {},
      });
    },
  ],
  [
    6,
    "an error is one JSON object on stdout with status 1 (differs: with cniVersion, and a code for each kind)",
    async (node) => {
      const { status, out } = await node.call("ADD", {}, { top: { cniVersion: "0.4.0" } });
      expect({ status, keys: Object.keys(out ?? {}), code: out?.["code"] }).toEqual({
        status: 1,
        keys: ["cniVersion", "code", "msg", "details"],
        code: 7,
      });
      expect(out?.["cniVersion"]).toBe("0.4.0");
    },
  ],
  [
    7,
    "keys match in any case, unknown ones are passed over, ipam.type and ipam.name say nothing; garbage behind is an error",
    async (node) => {
      const odd = { type: "anything", name: "another", RANGES: [[{ SUBNET: subnet, unknown: 1 }]], unknown: {} };
      expect(await node.add(odd)).toEqual(["10.0.0.2"]);
      expect(await node.call("CHECK", odd)).toMatchObject({ status: 0 });
      const env = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "c", CNI_NETNS: "/x", CNI_IFNAME: "eth0" };
      const conf = { cniVersion: "1.0.0", name: "net", ipam: { ...five, dataDir: node.dataDir } };
      expect(await callInProcess(env, `${JSON.stringify(conf)} x`)).toMatchObject({ status: 1, out: { code: 6 } });
    },
  ],
  [
    8,
    "one range may stand at the top; its other keys say nothing without a subnet",
    async (node) => {
      expect(await node.add({ subnet, rangeStart: "10.0.0.9", rangeEnd: "10.0.0.9", gateway: "10.0.0.5" })).toEqual([
        "10.0.0.9",
      ]);
      expect(await node.refused("ADD", { rangeStart: "10.0.0.9", gateway: "nonsense" })).toContain(
        "7: Cannot read the network configuration: it names no addresses",
      );
    },
  ],
  [
    9,
    "the runtime's ranges come first, then the one at the top, then the list; errors count in that order",
    async (node) => {
      const ipam = { subnet: "10.2.0.0/24", ranges: [[{ subnet: "10.3.0.0/24" }]] };
      const top = { runtimeConfig: { ipRanges: [[{ subnet: "10.1.0.0/24" }]] } };
      expect(await node.add(ipam, { top })).toEqual(["10.1.0.2", "10.2.0.2", "10.3.0.2"]);
      const clash = { runtimeConfig: { ipRanges: [[{ subnet: "10.3.0.0/25" }]] } };
      expect(await node.refused("ADD", ipam, { top: clash })).toContain(
        "range set 0, 10.3.0.1-10.3.0.126, and range set 2, 10.3.0.1-10.3.0.254, overlap",
      );
    },
  ],
  [
    10,
    "what is wrong is named, before anything is made",
    async (node) => {
      for (const [ipam, top, args, wanted] of [
        [undefined, {}, "", '7: Cannot read the network configuration: "ipam" is missing'],
        [five, {}, "A=1", '4: Cannot read CNI_ARGS: "A" is unknown'],
        [
          five,
          { runtimeConfig: { ips: ["x"] } },
          "",
          '7: Cannot read the network configuration: "runtimeConfig.ips[0]" is "x", wanted an IPv4 or IPv6 address',
        ],
        [{}, {}, "", "7: Cannot read the network configuration: it names no addresses"],
        [{ ranges: [[]] }, {}, "", '"ipam.ranges[0]" is empty'],
      ] as const)
        expect(await node.refused("ADD", ipam, { top, args })).toContain(wanted);
      expect(await node.leases()).toEqual([]);
    },
  ],
  [
    11,
    "an empty text is as good as none, but not in a list of addresses; null there is an error (differs: host-local crashes)",
    async (node) => {
      expect(await node.add(one({ subnet, gateway: "", rangeStart: "", rangeEnd: "" }), { args: "IP=" })).toEqual([
        "10.0.0.2",
      ]);
      for (const ips of [[""], [null], [7], [{}], [[]], "10.0.0.2", {}])
        expect(await node.refused("ADD", five, { id: "c2", top: { runtimeConfig: { ips } } })).toMatch(
          /^7: .*"runtimeConfig\.ips(\[0\])?" is /,
        );
      expect(await node.refused("ADD", five, { id: "c2", top: { args: { cni: { ips: [null] } } } })).toContain(
        '"args.cni.ips[0]" is null',
      );
    },
  ],
  [
    12,
    "octets with leading zeros are no address",
    async (node) => {
      expect(await node.refused("ADD", one({ subnet: "010.0.0.0/24" }))).toContain(
        '"ipam.ranges[0][0].subnet" is "010.0.0.0/24", wanted a network',
      );
      expect(await node.refused("ADD", one({ subnet, gateway: "10.0.0.01" }))).toContain(
        '.gateway" is "10.0.0.01", wanted an IPv4 or IPv6 address',
      );
    },
  ],
  [
    13,
    "a subnet must be there, large enough, of plain addresses and without host bits",
    async (node) => {
      for (const [range, wanted] of [
        [{}, '.subnet" is missing, wanted a network'],
        [{ subnet: "10.0.0.0/31" }, '"10.0.0.0/31", wanted a network with an address to give, /30 or larger'],
        [{ subnet: "fd00::/127" }, '"fd00::/127", wanted a network with an address to give, /126 or larger'],
        [{ subnet: "::ffff:10.0.0.0/120" }, '"::ffff:10.0.0.0/120", wanted a network'],
        [{ subnet: "10.0.0.3/24" }, 'wanted "10.0.0.0/24", without host bits'],
      ] as const)
        expect(await node.refused("ADD", one(range))).toContain(wanted);
    },
  ],
  [
    14,
    "the gateway is the first address unless another is given, from anywhere",
    async (node) => {
      expect((await node.call("ADD", five)).out).toMatchObject({ ips: [{ gateway: "10.0.0.1" }] });
      expect(
        (await node.call("ADD", one({ subnet: "10.9.0.0/24", gateway: "fe80::1" }), { id: "c2" })).out,
      ).toMatchObject({
        ips: [{ address: "10.9.0.1/24", gateway: "fe80::1" }],
      });
    },
  ],
  [
    15,
    "a range goes to the last address but one of IPv4, to the last of IPv6; a given one may hold the ends",
    async (node) => {
      const ends = { subnet: "10.0.0.0/30", rangeStart: "10.0.0.0", rangeEnd: "10.0.0.3" };
      const given: string[] = [];
      for (const id of ["a", "b", "c"]) given.push(...(await node.add(one(ends), { id })));
      expect(given).toEqual(["10.0.0.0", "10.0.0.2", "10.0.0.3"]);
      expect(await node.refused("ADD", one({ subnet: "10.1.0.0/30", rangeStart: "10.1.0.3" }), { id: "d" })).toContain(
        'rangeStart" is "10.1.0.3", wanted "10.1.0.2" or lower',
      );
      expect(await node.add(one({ subnet: "fd00::/126", rangeStart: "fd00::3" }), { id: "d" })).toEqual(["fd00::3"]);
    },
  ],
  [
    16,
    "an end outside of the subnet, or before the start, is named with the subnet",
    async (node) => {
      for (const [range, wanted] of [
        [{ rangeStart: "10.0.1.1" }, 'rangeStart" is "10.0.1.1", wanted an address in "10.0.0.0/24"'],
        [{ rangeEnd: "fd00::1" }, 'rangeEnd" is "fd00::1", wanted an address in "10.0.0.0/24"'],
        [{ rangeStart: "10.0.0.9", rangeEnd: "10.0.0.8" }, 'rangeStart" is "10.0.0.9", wanted "10.0.0.8" or lower'],
      ] as const)
        expect(await node.refused("ADD", one({ subnet, ...range }))).toContain(wanted);
    },
  ],
  [
    17,
    "a set is of one family, not empty and without overlap; one subnet may be split; another network does not count",
    async (node) => {
      for (const [ranges, wanted] of [
        [[[]], "is empty, wanted at least one range"],
        [[[{ subnet }, { subnet: "fd00::/64" }]], "wanted ranges of one address family"],
        [
          [[{ subnet }, { subnet: "10.0.0.0/25" }]],
          "10.0.0.1-10.0.0.254 and 10.0.0.1-10.0.0.126, wanted ranges that do not overlap",
        ],
        [
          [[{ subnet }], [{ subnet: "10.0.0.0/16" }]],
          "range set 0, 10.0.0.1-10.0.0.254, and range set 1, 10.0.0.1-10.0.255.254, overlap",
        ],
      ] as const)
        expect(await node.refused("ADD", { ranges })).toContain(wanted);
      const split = { ranges: [[{ subnet, rangeEnd: "10.0.0.9" }], [{ subnet, rangeStart: "10.0.0.10" }]] };
      expect(await node.add(split)).toEqual(["10.0.0.2", "10.0.0.10"]);
      expect(await node.add(split, { top: { name: "other" } })).toEqual(["10.0.0.2", "10.0.0.10"]);
    },
  ],
  [
    18,
    "two sets of a family need a result that has room, from 0.3.0 on",
    async (node) => {
      const two = { ranges: [[{ subnet }], [{ subnet: "10.1.0.0/24" }]] };
      for (const cniVersion of ["", "0.1.0", "0.2.0"])
        expect(await node.refused("ADD", two, { top: { cniVersion } })).toContain(
          "would give two IPv4 addresses, wanted one at most",
        );
      expect(await node.add(two, { top: { cniVersion: "0.3.0" } })).toHaveLength(2);
      expect(await node.call("ADD", dual, { id: "c2", top: { cniVersion: "0.2.0" } })).toMatchObject({ status: 0 });
    },
  ],
  [
    19,
    "addresses are asked for in three ways that add up, each once, whatever the prefix and the way it is written",
    async (node) => {
      const top = {
        args: { cni: { ips: ["10.0.0.5/8", "::ffff:10.0.0.5"] } },
        runtimeConfig: { ips: ["fd00::9/128", "10.0.0.5"] },
      };
      expect(await node.add(dual, { args: "IP=10.0.0.5", top })).toEqual(["10.0.0.5", "fd00::9"]);
      // Only in this case.
      expect(await node.add(dual, { id: "c2", args: "IgnoreUnknown=1;ip=10.0.0.3" })).toEqual(["10.0.0.6", "fd00::a"]);
    },
  ],
  [
    20,
    "CNI_ARGS may hold what is unknown only with IgnoreUnknown, and pairs only (differs: DEL and CHECK do not read it)",
    async (node) => {
      for (const [args, wanted] of [
        ["K=V", '"K" is unknown, wanted IgnoreUnknown=1'],
        ["IgnoreUnknown=0;K=V", '"K" is unknown'],
        ["IgnoreUnknown=", 'IgnoreUnknown is "", wanted 1, true, 0 or false'],
        ["IgnoreUnknown=yes", 'IgnoreUnknown is "yes"'],
        ["IgnoreUnknown=1;", "part 2 has no KEY=, wanted KEY=VALUE"],
        ["IgnoreUnknown=1;a=b=c", 'part 2 has more than one "=" (key "a")'],
        ["IgnoreUnknown=1;a", "part 2 has no KEY="],
        ["IP=x", 'IP is "x", wanted an IPv4 or IPv6 address'],
      ] as const)
        expect(await node.refused("ADD", five, { args })).toContain(`4: Cannot read CNI_ARGS: ${wanted}`);
      await node.add(five, { args: "IgnoreUnknown=TRUE;K8S_POD_NAME=web" });
      for (const verb of ["CHECK", "DEL"])
        expect(await node.call(verb, five, { args: "K=V;=" })).toMatchObject({ status: 0 });
    },
  ],
  [
    21,
    "each set takes one of what is asked for: the first that fits it (differs: there at random); the others give the next",
    async (node) => {
      const ranges = [[{ subnet: "10.0.0.0/29" }], [{ subnet: "10.1.0.0/29" }]];
      expect(await node.add({ ranges }, { top: { runtimeConfig: { ips: ["10.1.0.5"] } } })).toEqual([
        "10.0.0.2",
        "10.1.0.5",
      ]);
    },
  ],
  [
    22,
    "what no set takes is an error that names it, and nothing is given",
    async (node) => {
      const top = { runtimeConfig: { ips: ["10.0.0.5", "10.0.0.6", "192.168.0.1"] } };
      expect(await node.refused("ADD", dual, { top })).toContain(
        '101: Cannot allocate an address: there is no range set left for the requested "10.0.0.6", "192.168.0.1", wanted one address at most for each of "10.0.0.1-10.0.0.6", "fd00::1-',
      );
      expect(await node.leases()).toEqual([]);
    },
  ],
  [
    23,
    "an address asked for that is a gateway or taken is an error that names the holder and the range",
    async (node) => {
      await node.add(five, { id: "holder", args: "IP=10.0.0.5" });
      expect(await node.refused("ADD", five, { args: "IP=10.0.0.1" })).toContain(
        '101: Cannot allocate an address: the requested "10.0.0.1" is a gateway, wanted another address of range set "10.0.0.1-10.0.0.6"',
      );
      expect(await node.refused("ADD", five, { args: "IP=10.0.0.5" })).toMatch(
        /101: .*the requested address is taken: "10\.0\.0\.5", allocated, sandbox "holder" \(eth0\), since .*, wanted a free address of range set "10\.0\.0\.1-10\.0\.0\.6" \(4 of 5 addresses free, 0 cooling\)/,
      );
    },
  ],
  [
    24,
    "the prefix is the subnet's; a second address for the same interface is refused (differs: there it is collected)",
    async (node) => {
      expect((await node.call("ADD", five, { args: "IP=10.0.0.5/8" })).out).toMatchObject({
        ips: [{ address: "10.0.0.5/29" }],
      });
      expect(await node.refused("ADD", five, { args: "IP=10.0.0.6" })).toContain(
        'sandbox "c1" already holds "10.0.0.5" for "eth0" and asks for "10.0.0.6"',
      );
      expect(await node.leases()).toEqual(["c1 allocated"]);
    },
  ],
];

test.each(rules)("%i: %s", async (_number, _says, holds) => {
  using node = ipamNode();
  await holds(node);
});
