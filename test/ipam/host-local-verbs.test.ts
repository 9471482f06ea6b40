import { mkdirSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { callInProcess, dual, five, ipamNode, type Rule } from "./in-process.ts";

const window = (last: string, to = last) => ({
  subnet: "10.0.0.0/24",
  rangeStart: `10.0.0.${last}`,
  rangeEnd: `10.0.0.${to}`,
});
/** Without any wait, as host-local reuses addresses. */
const bare = (ipam: object): object => ({ cooldownMs: 0, ...ipam });

/** What the verbs of `pipette-ipam` do, beside what host-local does. Where they differ the sentence says so. */
const rules: readonly Rule[] = [
  [
    25,
    "the same ADD again gives the same (differs: there it fails); another interface of the sandbox gets its own",
    async (node) => {
      expect([await node.add(dual), await node.add(dual)]).toEqual([
        ["10.0.0.2", "fd00::2"],
        ["10.0.0.2", "fd00::2"],
      ]);
      expect(await node.add(dual, { env: { CNI_IFNAME: "eth1" } })).toEqual(["10.0.0.3", "fd00::3"]);
    },
  ],
  [
    26,
    "it goes round through the ranges in their order, without gateways, and gives what it gave last at the very end",
    async (node) => {
      const ipam = bare({ ranges: [[window("20", "21"), { ...window("1", "2"), gateway: "10.0.0.21" }]] });
      for (const [id, wanted] of [
        ["a", "10.0.0.20"],
        ["b", "10.0.0.2"],
      ] as const)
        expect(await node.add(ipam, { id })).toEqual([wanted]);
      await node.call("DEL", ipam, { id: "b" });
      // All but the address that was given last is taken.
      expect(await node.add(ipam, { id: "c" })).toEqual(["10.0.0.2"]);
      await node.call("DEL", ipam, { id: "a" });
      expect(await node.add(ipam, { id: "d" })).toEqual(["10.0.0.20"]);
    },
  ],
  [
    27,
    "the turn goes on from an address asked for, and begins anew where the last one is in no range any more",
    async (node) => {
      await node.add(bare(five), { args: "IP=10.0.0.4" });
      expect(await node.add(bare(five), { id: "c2" })).toEqual(["10.0.0.5"]);
      expect(await node.add(bare({ ranges: [[window("100", "110")]] }), { id: "c3" })).toEqual(["10.0.0.100"]);
      expect(await node.add(bare({ ranges: [[{ subnet: "10.0.0.0/28" }]] }), { id: "c4" })).toEqual(["10.0.0.2"]);
      // Differs: the turn belongs to the ranges, not to their place in the list, so the runtime's do not upset it.
      const top = { runtimeConfig: { ipRanges: [[{ subnet: "10.7.0.0/24" }]] } };
      expect(await node.add(bare(five), { id: "c5", top })).toEqual(["10.7.0.2", "10.0.0.6"]);
    },
  ],
  [
    28,
    "a pool that is used up is an error with range, numbers, and what to do",
    async (node) => {
      const ipam = { ranges: [[window("2"), window("9")]], exclude: ["10.0.0.9"] };
      const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web";
      await node.add(ipam, { id: "holder", args });
      expect(await node.refused("ADD", ipam)).toContain(
        '101: Cannot allocate an address: range set "10.0.0.2-10.0.0.2,10.0.0.9-10.0.0.9" of network "net" has 0 of 1 addresses free, wanted at least 1 (1 allocated, 0 releasing, 0 cooling; besides, 0 for gateways, 1 excluded; "pipette ipam list --network net" shows who has them: end pods, or',
      );
    },
  ],
  [
    29,
    "resolvConf is read first: without it nothing is given; lines add up, the last domain counts, nothing is checked",
    async (node) => {
      const resolvConf = `${node.path}/resolv.conf`;
      expect(await node.refused("ADD", { ...five, resolvConf })).toContain(
        `5: Cannot read "ipam.resolvConf" "${resolvConf}": `,
      );
      expect(await node.leases()).toEqual([]);
      writeFileSync(
        resolvConf,
        "# c\n; c\nnameserver 1.1.1.1\ndomain a\nsearch x y\nnameserver nonsense\nsearch z\ndomain b\noptions ndots:5\noptions rotate\n",
      );
      expect((await node.call("ADD", { ...five, resolvConf })).out).toMatchObject({
        dns: {
          nameservers: ["1.1.1.1", "nonsense"],
          domain: "b",
          search: ["x", "y", "z"],
          options: ["ndots:5", "rotate"],
        },
      });
      // Differs: the working directory is the runtime's, so a relative path is refused.
      expect(await node.refused("ADD", { ...five, resolvConf: "resolv.conf" })).toContain("wanted an absolute path");
    },
  ],
  [
    30,
    "an ADD that fails late leaves everything as it was (differs: there it takes away what the sandbox had)",
    async (node) => {
      const small = { ranges: [[{ subnet: "10.0.0.0/29" }], [{ subnet: "fd00::/126" }]] };
      for (const id of ["a", "b"]) await node.add(small, { id });
      expect(await node.refused("ADD", small, { id: "c" })).toContain(
        'range set "fd00::1-fd00::3" of network "net" has 0 of 2 addresses free',
      );
      expect(await node.refused("ADD", small, { id: "a", args: "IP=10.0.0.6" })).toContain("already holds");
      expect(await node.leases()).toEqual(["a allocated", "b allocated", "a allocated", "b allocated"]);
      // The turn of the first set did not move either.
      expect(await node.add(five, { id: "c" })).toEqual(["10.0.0.4"]);
    },
  ],
  [
    31,
    "0.1.0 and 0.2.0: the first address of each family, its routes with dst and gw only, dns always",
    async (node) => {
      const routes = [{ dst: "10.9.9.9/8", gw: "10.0.0.6", mtu: 1400 }, { dst: "::/0" }];
      for (const [cniVersion, shown] of [
        ["", "0.1.0"],
        ["0.2.0", "0.2.0"],
      ] as const)
        expect((await node.call("ADD", { ...five, routes }, { id: `c${shown}`, top: { cniVersion } })).out).toEqual({
          cniVersion: shown,
          ip4: {
            ip: expect.stringMatching(/^10\.0\.0\.[23]\/29$/),
            gateway: "10.0.0.1",
            routes: [{ dst: "10.9.9.9/8", gw: "10.0.0.6" }],
          },
          dns: {},
        });
    },
  ],
  [
    32,
    "0.3.0 to 0.4.0: addresses with their version, routes and dns always, no interfaces",
    async (node) => {
      for (const cniVersion of ["0.3.0", "0.3.1", "0.4.0"])
        expect((await node.call("ADD", { ...dual, routes: [{ dst: "::/0" }] }, { top: { cniVersion } })).out).toEqual({
          cniVersion,
          ips: [
            { version: "4", address: "10.0.0.2/29", gateway: "10.0.0.1" },
            { version: "6", address: "fd00::2/64", gateway: "fd00::1" },
          ],
          routes: [{ dst: "::/0" }],
          dns: {},
        });
    },
  ],
  [
    33,
    "1.0.0 and 1.1.0: addresses without version, no empty dns, routes with every field and their host bits",
    async (node) => {
      const routes = [
        { dst: "10.9.9.9/8", gw: "10.0.0.6", mtu: 1400, advmss: 1360, priority: 5, table: 100, scope: 0 },
      ];
      for (const cniVersion of ["1.0.0", "1.1.0"])
        expect((await node.call("ADD", { ...five, routes }, { top: { cniVersion } })).out).toEqual({
          cniVersion,
          ips: [{ address: "10.0.0.2/29", gateway: "10.0.0.1" }],
          routes,
        });
    },
  ],
  [
    34,
    "what a main plugin drops on the way comes from the settings file, for a main plugin that reads 0.2.0 too",
    async (node) => {
      mkdirSync(node.dataDir, { mode: 0o700 });
      const settings = { ranges: [[{ subnet: "10.0.0.0/29" }]], exclude: ["10.0.0.2"], routes: [{ dst: "0.0.0.0/0" }] };
      writeFileSync(`${node.dataDir}/net.json`, JSON.stringify(settings), { mode: 0o600 });
      const top = { cniVersion: "0.2.0" };
      expect((await node.call("ADD", {}, { top })).out).toEqual({
        cniVersion: "0.2.0",
        ip4: { ip: "10.0.0.3/29", gateway: "10.0.0.1", routes: [{ dst: "0.0.0.0/0" }] },
        dns: {},
      });
      expect(await node.call("STATUS", {}, { top: { cniVersion: "1.1.0" } })).toMatchObject({ status: 0 });
      writeFileSync(`${node.dataDir}/net.json`, "{");
      expect(await node.refused("ADD", {}, { id: "c2", top })).toContain(
        `6: Cannot read the settings file "${node.dataDir}/net.json"`,
      );
      expect(await node.refused("STATUS", {}, { top: { cniVersion: "1.1.0" } })).toContain("settings file");
      // What gives back does not ask.
      expect(await node.call("DEL", {}, { top })).toMatchObject({ status: 0 });
      expect(await node.leases()).toEqual(["c1 cooling"]);
    },
  ],
  [
    35,
    "addresses come in the order of the range sets: win-overlay wants IPv4 first, so the configuration says it first",
    async (node) => {
      expect(await node.add(dual)).toEqual(["10.0.0.2", "fd00::2"]);
      expect(await node.add({ ranges: dual.ranges.toReversed() }, { id: "c2" })).toEqual(["fd00::3", "10.0.0.3"]);
    },
  ],
  [
    36,
    "DEL gives back whatever the ranges are now (differs: it needs no valid ones), and an unknown owner is no error",
    async (node) => {
      await node.add(dual);
      expect(await node.call("DEL", dual, { id: "unknown" })).toMatchObject({ status: 0 });
      expect(await node.leases()).toEqual(["c1 allocated", "c1 allocated"]);
      expect(await node.call("DEL", { ranges: [[{ subnet: "nonsense" }]], exclude: 7 })).toMatchObject({ status: 0 });
      expect(await node.leases()).toEqual(["c1 cooling", "c1 cooling"]);
    },
  ],
  [
    37,
    "DEL reads neither resolvConf, prevResult nor the namespace, and may be repeated",
    async (node) => {
      await node.add(five);
      const options = { top: { prevResult: "nonsense" }, env: { CNI_NETNS: "" } };
      for (let i = 0; i < 3; i++)
        expect(await node.call("DEL", { ...five, resolvConf: "/none" }, options)).toMatchObject({ status: 0 });
    },
  ],
  [
    38,
    "CHECK wants a lease of this sandbox and interface (differs: and its addresses in prevResult), from 0.4.0 on",
    async (node) => {
      await node.add(five);
      expect(await node.call("CHECK", five)).toMatchObject({ status: 0 });
      expect(await node.refused("CHECK", five, { env: { CNI_IFNAME: "eth1" } })).toContain(
        '103: Cannot confirm the address of "eth1" of sandbox "c1": it has none',
      );
      const prevResult = { ips: [{ address: "10.0.0.9/29" }] };
      expect(await node.refused("CHECK", five, { top: { prevResult } })).toContain(
        '"prevResult" has "10.0.0.9/29", wanted "10.0.0.2/29"',
      );
      expect(await node.refused("CHECK", five, { top: { cniVersion: "0.3.1" } })).toContain(
        '1: Cannot run CHECK: "cniVersion" is "0.3.1", wanted "0.4.0" or later',
      );
    },
  ],
  [
    39,
    "GC and STATUS are there from 1.1.0 on, and do what they are for (differs: there they do nothing)",
    async (node) => {
      for (const verb of ["GC", "STATUS"])
        expect(await node.refused(verb, five)).toContain(
          `1: Cannot run ${verb}: "cniVersion" is "1.0.0", wanted "1.1.0" or later`,
        );
      await node.add(five);
      const top = { cniVersion: "1.1.0" };
      expect(await node.refused("GC", five, { top })).toContain(
        '7: Cannot read the network configuration: "cni.dev/valid-attachments" is missing',
      );
      expect(await node.leases()).toEqual(["c1 allocated"]);
      expect(await node.call("GC", five, { top: { ...top, "cni.dev/valid-attachments": [] } })).toMatchObject({
        status: 0,
      });
      expect(await node.leases()).toEqual(["c1 cooling"]);
      expect(await node.refused("STATUS", { ranges: "nonsense" }, { top })).toContain("7: ");
    },
  ],
  [
    40,
    "VERSION names seven versions (differs: and the one that it was asked in)",
    async () => {
      const { status, out } = await callInProcess({ CNI_COMMAND: "VERSION" }, { cniVersion: "0.4.0" });
      expect({ status, out }).toEqual({
        status: 0,
        out: {
          cniVersion: "0.4.0",
          supportedVersions: ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"],
        },
      });
    },
  ],
];

test.each(rules)("%i: %s", async (_number, _says, holds) => {
  using node = ipamNode();
  await holds(node);
});
