import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { traceInjected } from "../../operator/trace/inject.ts";
import type { TraceDocument } from "../../shared/documents/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { startTraceLab, type TraceLab, traceFlowsOn } from "./lab/trace-lab.ts";

const never = new AbortController().signal;

describeWith("packets that agents inject", ["root", "openvswitch", "nft", "etcd"], () => {
  let cluster: TraceLab;

  beforeAll(async () => {
    compileExecutables();
    cluster = await startTraceLab();
  }, 120_000);
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  type Wanted = Omit<Parameters<typeof traceInjected>[1], "from" | "to">;
  const inject = (from: string, to: string, more: Wanted = {}): Promise<TraceDocument> =>
    traceInjected(cluster.source, { from, to, ...more }, never);

  const families = [4, 6] as const;
  const packets = [{ protocol: "icmp" }, { protocol: "tcp", port: 80 }, { protocol: "udp", port: 53 }] as const;

  describe.each(families)("of IPv%i", (family) => {
    test.each(packets)("to a pod of the same node: %j", async (packet) => {
      const trace = await inject("shop/a", "shop/b", { ...packet, family });
      console.log(JSON.stringify(trace, null, 1));
      expect(trace.verdict).toMatchObject({ t: "delivered", node: "n1", text: expect.stringContaining("to pod shop/b") });
      expect(trace.nodes.map(({ node, role }) => [node, role])).toEqual([["n1", "source"]]);
      expect(trace.packet).toMatchObject({ family: `IPv${family}`, protocol: packet.protocol });
    });

    test.each(packets)("to a pod of another node: %j", async (packet) => {
      const trace = await inject("shop/a", "shop/c", { ...packet, family });
      console.log(JSON.stringify(trace, null, 1));
      expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2", text: expect.stringContaining("to pod shop/c") });
      expect(trace.nodes.map(({ node, role }) => [node, role])).toEqual([
        ["n1", "source"],
        ["n2", "destination"],
      ]);
      expect(trace.failures).toEqual([]);
    });
  });

  test("leave no flow behind", async () => {
    for (const node of cluster.lab.nodes) expect(await traceFlowsOn(node)).toEqual([]);
  });
});
