import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { forgetNeighbours } from "../support/forget-neighbours.ts";
import { describeWith } from "../support/requires.ts";
import { datagram } from "./forbidden-frames.ts";
import { Lab, type LabOptions } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { openRawPod, type RawPod } from "./lab/raw-pod.ts";
import { answers } from "./lab/reach.ts";

/** Addresses of a node's subnet that no pod has: the node gives the lowest away. */
const absent = Array.from({ length: 200 }, (_, i) => 50 + i);

const modes: readonly (readonly [string, LabOptions])[] = [
  ["without tunnels", { nodes: ["a", "a"], ovs: { mode: "noEncap" } }],
  ["with tunnels between links only", { nodes: ["a", "a"], ovs: { mode: "hybrid" } }],
  ["on a kernel bridge", { nodes: ["a", "a"], dataPath: "bridge" }],
];

describeWith(
  "addresses that no pod has, on nodes that route for others",
  ["root", "openvswitch", "nft", "etcd"],
  () => {
    beforeAll(compileExecutables);

    describe.each(modes)("%s", (_name, options) => {
      let lab: Lab;
      let node: LabNode;
      let hostile: LabPod;
      let pod: LabPod;
      let raw: RawPod;
      let device: string;
      let table: string;

      beforeAll(async () => {
        lab = await Lab.start(options);
        node = lab.node(2);
        device = node.gatewayDevice;
        table = `inet pipette-${device}`;
        [hostile, pod] = await Promise.all([lab.node(1).addPod("hostile"), node.addPod("first")]);
        raw = await openRawPod(hostile);
      });
      afterAll(async () => {
        raw?.[Symbol.dispose]();
        await lab?.[Symbol.asyncDispose]();
      });

      /** Those that the node's kernel has asked for, or tries to. */
      const neighbours = async (): Promise<readonly string[]> => {
        const found = JSON.parse(await node.namespace.run(`ip -j neigh show dev ${device}`)) as { dst: string }[];
        return found.map(({ dst }) => dst).filter((dst) => nobodys.includes(dst));
      };
      let nobodys: readonly string[] = [];

      async function flood(): Promise<void> {
        const [v4, v6] = pod.addresses.map((address) => address.replace(/[^.:]*$/, ""));
        nobodys = absent.flatMap((host) => [`${v4}${host}`, `${v6}${host.toString(16)}`]);
        await forgetNeighbours(node.namespace, `nud all dev ${device}`);
        const before = await received(node);
        for (const to of nobodys)
          raw.link.send(
            datagram(
              { from: raw.mac, to: raw.gatewayMac },
              { from: raw[to.includes(":") ? 6 : 4], to },
              [40_000, 9],
              [1],
            ),
          );
        await eventually(async () => (await received(node)) >= before + nobodys.length, "the flood at the other node");
      }

      /** From another node and from their own. */
      async function expectReached(...pods: readonly LabPod[]): Promise<void> {
        for (const { addresses } of pods)
          for (const address of addresses)
            expect([
              address,
              await answers(hostile.namespace, address, { seconds: 10 }),
              await answers(node.namespace, address, { seconds: 10 }),
            ]).toEqual([address, true, true]);
      }

      async function expectPresent(...pods: readonly LabPod[]): Promise<void> {
        const expected = pods.flatMap(({ addresses }) => addresses).sort();
        expect(await elements(node)).toEqual(expected);
      }

      test("the node asks for none of them, and whoever sent it is told", async () => {
        await flood();
        expect(await neighbours()).toEqual([]);
        await expectReached(pod);
        await expectPresent(pod);
        // That there is no such host, in as many packets as the kernel's own limit lets out.
        const frames = raw.link.received();
        const isTold = (at: number, type: number, code: number): boolean =>
          frames.some((frame) => frame[at] === type && frame[at + 1] === code);
        expect([isTold(34, 3, 1), isTold(54, 1, 3)]).toEqual([true, true]);
      });

      test("a pod that comes is reached at once, and one that has gone is nobody", async () => {
        const second = await node.addPod("second");
        await expectReached(pod, second);
        await expectPresent(pod, second);
        await second.remove();
        await expectPresent(pod);
      });

      test("an agent that starts anew knows the pods that stand", async () => {
        await node.agent.end("SIGKILL");
        // By somebody while nobody looks: of a pod that stands, and of none.
        await node.namespace.run(`nft add element ${table} pods4 { 10.10.200.200 }`);
        await node.namespace.run(`nft delete element ${table} pods4 { ${pod.address(4)} }`);
        await node.startAgent();
        await expectReached(pod);
        await expectPresent(pod);
        await flood();
        expect(await neighbours()).toEqual([]);
      });

      test("an agent that was killed before it had written down the other nodes cuts nobody off", async () => {
        await node.agent.end("SIGKILL");
        const file = `${node.home.dataDir}/nodes.json`;
        const known = JSON.parse(readFileSync(file, "utf8"));
        expect(known.nodes).toHaveLength(1);
        writeFileSync(file, JSON.stringify({ ...known, nodes: [] }));
        await node.startAgent();
        await expectReached(pod);
      });

      test("an agent of a release without these rules may have stood before", async () => {
        await node.agent.end("SIGTERM");
        for (const chain of ["absent-forward", "absent-output"])
          await node.namespace.run(`nft delete chain ${table} ${chain}`);
        for (const set of ["pods4", "pods6"]) await node.namespace.run(`nft delete set ${table} ${set}`);
        await node.startAgent();
        await expectReached(pod);
        await expectPresent(pod);
      });

      test("rules that somebody takes away come back with the next pod, or with the agent's next look", async () => {
        await node.namespace.run(`nft delete table ${table}`);
        const next = await node.addPod("next");
        await expectReached(pod, next);
        const isWhole = async (): Promise<boolean> =>
          (await node.pipette("status", "--socket", node.home.socket).catch(String)).includes("no problems");
        await eventually(isWhole, "the agent to mend the rules");
        await expectPresent(pod, next);
        await flood();
        expect(await neighbours()).toEqual([]);
      });

      test("elements that somebody takes away are noticed, and come back", async () => {
        await node.namespace.run(`nft flush set ${table} pods6`);
        const isBack = async (): Promise<boolean> => (await elements(node)).includes(pod.address(6));
        await eventually(isBack, "the agent to mend the set");
        await expectReached(pod);
      });
    });
  },
);

/** Packets that the node's kernel has got, for whomever. */
async function received({ namespace }: LabNode): Promise<number> {
  const [v4, v6] = await Promise.all(["snmp", "snmp6"].map((file) => namespace.run(`cat /proc/net/${file}`)));
  const [names = [], values = []] = (v4 ?? "")
    .split("\n")
    .filter((line) => line.startsWith("Ip:"))
    .map((line) => line.split(" "));
  return Number(values[names.indexOf("InReceives")]) + Number(/^Ip6InReceives\s+(\d+)$/m.exec(v6 ?? "")?.[1]);
}

/** Of the sets of addresses that a pod has: none while the table is made anew. */
async function elements({ namespace }: LabNode): Promise<readonly string[]> {
  const { nftables } = JSON.parse(await namespace.run("nft -j list ruleset")) as {
    nftables: readonly { set?: { family: string; name: string; elem?: readonly string[] } }[];
  };
  const isWanted = (set: { family: string; name: string }): boolean =>
    set.family === "inet" && set.name.startsWith("pods");
  return nftables.flatMap(({ set }) => (set !== undefined && isWanted(set) ? (set.elem ?? []) : [])).sort();
}
