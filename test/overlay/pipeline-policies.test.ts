import { afterAll, beforeAll, expect, test } from "vitest";
import { isolationFlows, policyFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { describeWith } from "../support/requires.ts";
import { PipelineBridge } from "./pipeline-bridge.ts";
import { contexts, macs, nodeFlows, packet, pods } from "./pipeline-node.ts";

/** Between a pod and one of another node, which nobody's rule allows any more. */
describeWith("an answer of a stream that nobody asks for any more", ["root", "openvswitch"], () => {
  let bridge: PipelineBridge;
  beforeAll(async () => {
    bridge = await PipelineBridge.start();
    await bridge.install([
      ...nodeFlows(contexts.encap),
      ...policyFlows(contexts.encap),
      ...(["egress", "ingress"] as const).flatMap((direction) => isolationFlows(direction, pods.pod1)),
    ]);
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  const states = ["trk,est,rpl", "trk,est"];

  test.each([4, 6] as const)("goes on, and the question that it answers is judged: IPv%i", async (version) => {
    const udp = (text: string): string => text.replace("tcp", "udp").replace("tcp_dst=80", "udp_src=53,udp_dst=7");
    const mark = (source: number) => `ct_mark=${source}`;
    const sent = packet(version, "pod1", ["pod1", "peerPod"], [macs.pod1, macs.gateway], mark(1));
    const out = await bridge.trace(udp(sent), ...states);
    expect(out.text).toContain("output port is 1");
    // What the marks of the connection are then, a trace does not know.
    expect(out.way).toMatch(/Output .*ConntrackZone ConntrackState .*IngressDefaultRule IngressMetric$/);
    const got = packet(version, "tun0", ["peerPod", "pod1"], [macs.peer, macs.virtual], mark(3));
    const into = await bridge.trace(udp(got), ...states);
    expect(into.text).toContain("output port is 11");
    expect(into.way).toMatch(/Output ConntrackZone ConntrackState EgressRule EgressDefaultRule EgressMetric$/);
  });
});
