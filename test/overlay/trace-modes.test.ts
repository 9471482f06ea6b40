import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { traceInjected } from "../../operator/trace/inject.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith, type Need } from "../support/requires.ts";
import { answers } from "./lab/reach.ts";
import { startTraceLab, type TraceLab, traceFlowsOn } from "./lab/trace-lab.ts";

const never = new AbortController().signal;
const needs = ["root", "openvswitch", "nft", "etcd"] as const satisfies readonly Need[];

interface Mode {
  readonly ovs: Parameters<typeof startTraceLab>[0];
  readonly nic?: "uplink";
  readonly needs?: readonly Need[];
  /** How the packet leaves the one node, and comes to the other. */
  readonly leaves: RegExp;
  readonly comes: RegExp;
}

const byKernel = { leaves: /routes it to node n2/, comes: /by the node's kernel from node n1/ };
const modes: readonly (readonly [string, Mode])[] = [
  ["noEncap", { ovs: { mode: "noEncap" }, ...byKernel }],
  [
    "noEncap, by the uplink",
    {
      ovs: { mode: "noEncap" },
      nic: "uplink",
      leaves: /by the uplink to node n2/,
      comes: /by the uplink from node n1/,
    },
  ],
  ["hybrid, on one link", { ovs: { mode: "hybrid" }, ...byKernel }],
  ["WireGuard", { ovs: { encryption: "wireguard", wireguard: {} }, needs: ["wireguard-go", "tun"], ...byKernel }],
];

describe.each(modes)("injected packets, in %s", (_, { ovs, nic, needs: more = [], leaves, comes }) => {
  describeWith("of real switches", [...needs, ...more], () => {
    let cluster: TraceLab;
    beforeAll(async () => {
      compileExecutables();
      cluster = await startTraceLab(ovs, nic === undefined ? {} : { nic });
    }, 120_000);
    afterAll(() => cluster?.[Symbol.asyncDispose]());

    test.each([4, 6] as const)("of IPv%i, from node to node", async (family) => {
      const { pods, source } = cluster;
      expect(await answers(pods.a.namespace, pods.c.address(family))).toBe(true);
      const trace = await traceInjected(
        source,
        { from: "shop/a", to: "shop/c", protocol: "udp", port: 53, family },
        never,
      );
      expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2", text: expect.stringContaining("pod shop/c") });
      expect(trace.nodes[0]?.steps.at(-1)?.text).toMatch(leaves);
      expect(trace.nodes[1]?.steps[0]).toMatchObject({ action: "received", text: expect.stringMatching(comes) });
      for (const node of cluster.lab.nodes) expect(await traceFlowsOn(node)).toEqual([]);
    });
  });
});
