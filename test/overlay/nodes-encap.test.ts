import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tables } from "../../agent/datapath/ovs/pipeline/tables.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { beyond, placesOf } from "./lab/places.ts";
import { answers, pingsHeard, unansweredPings } from "./lab/reach.ts";
import { failedConnections } from "./lab/tcp.ts";
import { type Traces, tracesOn } from "./lab/traces.ts";

/** Two nodes on one link and one beyond the router, all in Geneve, with two pods each. */
describeWith("pods of three nodes, in Geneve", ["root", "openvswitch", "nft", "etcd"], () => {
  let lab: Lab;
  let near: LabPod;
  let sibling: LabPod;
  let far: LabPod;
  /** What stood before there was any pod. */
  let bare: readonly Traces[];

  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a", "b"] });
    bare = await Promise.all(lab.nodes.map(tracesOn));
    const names = ["web", "db"];
    const pods = await Promise.all(lab.nodes.flatMap((node) => names.map((name) => node.addPod(name))));
    [near, sibling, far] = [pods[0], pods[1], pods[2]] as [LabPod, LabPod, LabPod];
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  const reaches = (from: LabPod, to: LabPod, family: 4 | 6 = 4): Promise<boolean> =>
    answers(from.namespace, to.address(family), { seconds: 1 });

  test("everybody answers the first ping of everybody", async () => {
    const places = placesOf(lab);
    expect(places.length).toBe(9);
    expect(await unansweredPings(places, [...places, beyond(lab)])).toEqual([]);
  });

  test("everybody is connected with everybody, under the right address", async () => {
    const places = placesOf(lab);
    expect(await failedConnections(places, [...places, beyond(lab)])).toEqual([]);
  });

  test("nothing is answered twice", async () => {
    for (const to of [sibling, far])
      for (const address of to.addresses) {
        const output = await near.namespace.run(`ping -n -c 5 -i 0.1 -w 3 ${address}`);
        // It sends one more where an answer is late.
        expect(output).toMatch(/ ([5-9]|\d\d) received/);
        expect(output).not.toContain("DUP");
      }
  });

  test("the largest packet goes through whole, in a tunnel; one byte more does not", async () => {
    for (const address of far.addresses) {
      const kinds = await lab.underlay.wire.during(async () => {
        expect(await answers(near.namespace, address, { packetBytes: 1450 })).toBe(true);
      });
      expect(kinds).toEqual(["geneve"]);
      expect(await answers(near.namespace, address, { packetBytes: 1451, seconds: 1 })).toBe(false);
      // And what must be cut is put together again.
      expect(await near.namespace.run(`ping -n -c 1 -W 2 -s 4000 ${address}`)).toContain("1 received");
    }
  });

  test("without the flow to the other node nobody answers from there; the agent's next start puts it back", async () => {
    // One that runs does so at once.
    await near.node.agent.end("SIGKILL");
    for (const family of [4, 6] as const) {
      const to = far.address(family);
      const toNode = family === 4 ? `ip,nw_dst=${to}/24` : `ipv6,ipv6_dst=${to}/64`;
      await near.node.deleteFlows(`table=${tables.L3Forwarding},${toNode}`);
      expect(await reaches(near, far, family)).toBe(false);
    }
    expect(await reaches(near, sibling)).toBe(true);
    await near.node.startAgent();
    for (const family of [4, 6] as const) expect(await reaches(near, far, family)).toBe(true);
  });

  test("under an address that is not the pod's nothing gets out", async () => {
    const [v4, v6] = [`${near.address(4)}`.replace(/\d+$/, "200"), `${near.address(6)}`.replace(/[^:]+$/, "200")];
    await near.namespace.ip(`addr add ${v4}/24 dev eth0`, `addr add ${v6}/64 dev eth0 nodad`);
    for (const to of [sibling, far]) {
      const before = await pingsHeard(to.namespace);
      expect(await answers(near.namespace, to.address(4), { from: v4, seconds: 1 })).toBe(false);
      expect(await answers(near.namespace, to.address(6), { from: v6, seconds: 1 })).toBe(false);
      expect(await pingsHeard(to.namespace)).toBe(before);
      for (const family of [4, 6] as const) {
        const own = { from: near.address(family), seconds: 1 };
        expect(await answers(near.namespace, to.address(family), own)).toBe(true);
      }
      expect(await pingsHeard(to.namespace)).toBe(before + 2);
    }
    await near.namespace.ip(`addr del ${v4}/24 dev eth0`, `addr del ${v6}/64 dev eth0`);
  });

  test("nor under a MAC that is not the pod's", async () => {
    const mac = near.result.interfaces.find(({ sandbox }) => sandbox !== undefined)?.mac;
    for (const to of [sibling, far]) expect(await reaches(near, to)).toBe(true);
    const known: { dst: string; lladdr?: string }[] = JSON.parse(
      await near.namespace.run("ip -j -4 neigh show dev eth0"),
    );
    const asked = known.filter(({ lladdr }) => lladdr !== undefined);
    // Else its questions for MACs would be all that is stopped.
    await near.namespace.ip(
      "link set eth0 address 02:00:00:00:be:ef",
      ...asked.map(({ dst, lladdr }) => `neigh replace ${dst} lladdr ${lladdr} dev eth0 nud permanent`),
    );
    for (const to of [sibling, far]) {
      const before = await pingsHeard(to.namespace);
      expect(await reaches(near, to)).toBe(false);
      expect(await pingsHeard(to.namespace)).toBe(before);
    }
    await near.namespace.ip(`link set eth0 address ${mac}`);
    for (const to of [sibling, far]) await eventually(() => reaches(near, to), "the pod under its own MAC");
  });

  test("CHECK is content with all of them", async () => {
    for (const pod of [near, sibling, far]) await pod.check();
  });

  test("DEL of every pod leaves no lease, port, flow or interface", async () => {
    for (const node of lab.nodes) for (const pod of [...node.pods]) await pod.remove();
    for (const [i, node] of lab.nodes.entries())
      await eventually(async () => isDeepStrictEqual(await tracesOn(node), bare[i]), `the end of ${node.name}'s pods`);
  });
});
