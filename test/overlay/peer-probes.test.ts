import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PeersDocument } from "../../shared/documents/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { Lab, type LabOptions } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";

type Peer = PeersDocument["peers"][number];

/** What a node says of the way to another one's pods, a family after the other. */
async function probesOf(node: LabNode, other: LabNode): Promise<NonNullable<Peer["probes"]>> {
  const text = await node.pipette("get", "peers", "-o", "json", "--socket", node.home.socket);
  const { peers }: PeersDocument = JSON.parse(text);
  return peers.find(({ name }) => name === other.name)?.probes ?? [];
}

const statesOf = async (node: LabNode, other: LabNode): Promise<readonly string[]> =>
  (await probesOf(node, other)).map(({ state }) => state);

/** The time until a way counts as lost is some seconds; on a busy machine more. */
const soon = { timeout: 60_000, interval: 300 };
const expectStates = (node: LabNode, other: LabNode, states: readonly string[]) =>
  expect.poll(() => statesOf(node, other), soon).toEqual(states);

const reached = ["reachable", "reachable"];
const lost = ["lost", "lost"];

async function findings(node: LabNode): Promise<readonly { code: string; what: string; todo: string }[]> {
  const words = [`${node.executables}/pipette`, "doctor", "--once", "--json", "--config", node.home.configFile];
  return JSON.parse((await node.namespace.start(words).ended).stdout).findings;
}

/** With what a tunnel adds, in bytes. */
const ways: readonly (readonly [string, number, LabOptions])[] = [
  ["tunnels", 50, { nodes: ["a", "a"] }],
  ["routes of Open vSwitch", 0, { nodes: ["a", "a"], ovs: { mode: "noEncap" } }],
  ["kernel bridges", 0, { nodes: ["a", "a"], dataPath: "bridge" }],
];

describeWith(
  "what nodes know of the way to each other's pods",
  ["root", "openvswitch", "nft", "etcd", "cni-plugins"],
  () => {
    beforeAll(compileExecutables);

    describe.each(ways)("%s", (_, overhead, options) => {
      let lab: Lab;
      let node: LabNode;
      let other: LabNode;
      beforeAll(async () => {
        lab = await Lab.start({ ...options, probeIntervalMs: 1_000 });
        [node, other] = [lab.node(1), lab.node(2)];
      }, 120_000);
      afterAll(() => lab?.[Symbol.asyncDispose]());

      /** What the nodes send each other by way of the link between them is dropped, where it is said. */
      const dropFrom = (number: number): Promise<string> =>
        lab.underlay.namespace.run(
          "nft -f -",
          `table netdev cut { chain from${number} {
          type filter hook ingress device "node${number}" priority -10;
          ether type arp accept
          icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
          tcp dport 2379 accept
          drop
        }
        }`,
        );
      const restore = (): Promise<string> => lab.underlay.namespace.run("nft delete table netdev cut");

      test("it is reached, in both families, and how fast is known", async () => {
        await expectStates(node, other, reached);
        const probes = await probesOf(node, other);
        for (const { rttMicros = 0, lastRttMicros = 0, seenAtMs, failures } of probes) {
          expect(rttMicros).toBeGreaterThan(0);
          expect(lastRttMicros).toBeGreaterThan(0);
          expect(seenAtMs).toBeGreaterThan(0);
          expect(failures).toBe(0);
        }
        expect(await statesOf(node, node)).toEqual([]);
        // By the kernel's own sockets for this too, where root may have them: in a new namespace nobody may.
        const group = "/proc/sys/net/ipv4/ping_group_range";
        node.namespace.within(() => writeFileSync(group, "0 0"));
        const { seenAtMs: before = 0 } = (await probesOf(node, other))[0] ?? {};
        const later = async () => (await probesOf(node, other)).every(({ seenAtMs = 0 }) => seenAtMs > before + 1_000);
        await expect.poll(later, soon).toBe(true);
        expect(await statesOf(node, other)).toEqual(reached);
        const text = await node.pipette("get", "peers", "--socket", node.home.socket);
        expect(text).toMatch(/n2 +ready +reachable +\S*s/);
        expect(await node.pipette("status", "--socket", node.home.socket)).toContain(
          "pods of 1 of 1 other nodes are reached",
        );
      });

      test("a cut in one direction is a loss for both, told with what to do, and over when it is mended", async () => {
        await dropFrom(2);
        await expectStates(node, other, lost);
        await expectStates(other, node, lost);
        const [found, ...more] = (await findings(node)).filter(({ code }) => code.startsWith("peer-"));
        expect(more).toHaveLength(1);
        expect(found).toMatchObject({ code: "peer-lost", what: expect.stringMatching(/no longer reaches .*"n2"/) });
        expect(
          await node.pipette("status", "--socket", node.home.socket).catch((caught: Error) => caught.message),
        ).toContain('peers: this node no longer reaches the pods of node "n2"');
        const [probe] = await probesOf(node, other);
        expect(probe?.failures).toBeGreaterThanOrEqual(3);
        expect(probe?.lostSinceMs).toBeGreaterThan(probe?.seenAtMs ?? 0);
        await restore();
        await expectStates(node, other, reached);
        expect((await findings(node)).filter(({ code }) => code.startsWith("peer-"))).toEqual([]);
      });

      test("where only large packets vanish between the nodes, the number that would do is named", async () => {
        await lab.underlay.namespace.ip("link set node2 mtu 1300");
        // Tried anew with each tenth answer.
        const mtusOf = async () => (await probesOf(node, other)).map(({ state, mtu = 0 }) => [state, mtu]);
        await expect
          .poll(async () => (await mtusOf()).every(([, mtu]) => mtu !== 0), { timeout: 90_000, interval: 500 })
          .toBe(true);
        const found = await mtusOf();
        for (const [state, mtu] of found) {
          expect(state).toBe("reachable");
          // A bridge of the kernel leaves room for a VLAN's tag, whether there is one or not.
          expect(mtu).toBeGreaterThanOrEqual(1300 - overhead);
          expect(mtu).toBeLessThanOrEqual(1304 - overhead);
        }
        const told = (await findings(node)).filter(({ code }) => code === "peer-mtu");
        expect(told).toHaveLength(found.length);
        expect(told[0]?.what).toContain(`wanted "mtu: ${found[0]?.[1]}"`);
        await lab.underlay.namespace.ip("link set node2 mtu 1500");
        await expect.poll(async () => (await mtusOf()).every(([, mtu]) => mtu === 0), soon).toBe(true);
      });
    });

    test("a node behind a router that knows no pods was never reached, and that is told apart", async () => {
      await using lab = await Lab.start({ nodes: ["a", "b"], dataPath: "bridge", probeIntervalMs: 1_000 });
      const [node, other] = [lab.node(1), lab.node(2)];
      await expectStates(node, other, ["silent", "silent"]);
      const told = (await findings(node)).filter(({ code }) => code === "peer-silent");
      expect(told).toHaveLength(2);
      expect(told[0]?.what).toMatch(/has never reached the pods of node "n2" .*: nothing comes back$/);
    });
  },
);
