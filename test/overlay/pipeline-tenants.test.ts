import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { describeWith } from "../support/requires.ts";
import { PipelineBridge } from "./pipeline-bridge.ts";
import { contexts, type Host, macs, nodeFlows, packet, pods, type Version } from "./pipeline-node.ts";

const { pod1, pod2, gateway, virtual } = macs;
const known = "trk,est";
const tunnel = "tun_src=172.30.0.2,tun_dst=172.30.0.1";

describeWith("tenants in the pipeline", ["linux", "root", "openvswitch"], () => {
  let bridge: PipelineBridge;
  beforeAll(async () => {
    bridge = await PipelineBridge.start();
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  const withVnids = (vnids: readonly [number, number], context: PipelineContext = contexts.multitenant) =>
    bridge.install(
      nodeFlows(context, [
        { ...pods.pod1, vnid: vnids[0] },
        { ...pods.pod2, vnid: vnids[1] },
      ]),
    );

  describe.each<Version>([4, 6])("IPv%i", (version) => {
    const between = () => bridge.trace(packet(version, "pod1", ["pod1", "pod2"], [pod1, pod2]), known);
    const fromTunnel = (key: number) =>
      bridge.trace(
        packet(version, "tun0", ["peerPod", "pod1"], [macs.peer, virtual], `${tunnel},tun_id=${key}`),
        known,
      );

    test.each([
      [11, 11, true],
      [11, 12, false],
      [12, 11, false],
      [0, 12, true],
      [11, 0, true],
      [0, 0, true],
      [0xffffff, 0xffffff, true],
      [0xffffff, 0x0fffff, false],
    ])("on one node, from project %i to %i: %s", async (from, to, passes) => {
      await withVnids([from, to]);
      const { way, to: sent } = await between();
      expect(sent).toEqual(passes ? ["pod2"] : []);
      expect(way.endsWith("TenantIsolation IngressRule IngressDefaultRule ConntrackCommit Output")).toBe(passes);
    });

    test("what comes out of the tunnel has its project as key", async () => {
      await withVnids([11, 0]);
      const reached = await Promise.all([0, 11, 12, 10, 0xffffff].map(async (key) => (await fromTunnel(key)).to));
      expect(reached).toEqual([["pod1"], ["pod1"], [], [], []]);
      const global = packet(version, "tun0", ["peerPod", "pod2"], [macs.peer, virtual], `${tunnel},tun_id=12`);
      expect((await bridge.trace(global, known)).to).toEqual(["pod2"]);
    });

    test("what goes into it takes its project along; the node's own has none", async () => {
      await withVnids([0xabcdef, 12]);
      const sent = await bridge.trace(packet(version, "pod1", ["pod1", "peerPod"], [pod1, gateway]), known);
      expect([sent.to, sent.actions.includes("geneve(vni=0xabcdef)")]).toEqual([["tun0"], true]);
      const own = await bridge.trace(packet(version, "gw0", ["gateway", "peerPod"], [gateway, virtual]), known);
      expect([own.to, own.actions.includes("geneve(vni=0x0)")]).toEqual([["tun0"], true]);
    });

    test("the node and the world outside reach all projects, and are reached", async () => {
      await withVnids([11, 12]);
      for (const host of ["gateway", "outside"] as const) {
        expect((await bridge.trace(packet(version, "gw0", [host, "pod1"], [gateway, pod1]), known, known)).to).toEqual([
          "pod1",
        ]);
        const out = packet(version, "pod2", ["pod2", host], [pod2, gateway]);
        expect((await bridge.trace(out, known, known)).to).toEqual(["gw0"]);
      }
    });

    test("what the node sends on for a pod is the pod's still, and what it sends for others' pods is nobody's", async () => {
      await withVnids([11, 12]);
      const sentOn = (host: Host, to: Host, mac: string) =>
        bridge.trace(packet(version, "gw0", [host, to], [gateway, mac]), "trk,new", "trk,new");
      expect((await sentOn("pod1", "pod2", pod2)).way.endsWith("TenantIsolation")).toBe(true);
      const far = await sentOn("pod1", "peerPod", virtual);
      expect([far.to, far.final.includes("tun_id=0xb")]).toEqual([["tun0"], true]);
      for (const host of ["absentPod", "peerPod", "farPod"] as const) {
        const stranger = await sentOn(host, "pod2", pod2);
        expect([stranger.to, stranger.way.endsWith("SpoofGuard")]).toEqual([[], true]);
      }
      await withVnids([12, 12]);
      expect((await sentOn("pod1", "pod2", pod2)).to).toEqual(["pod2"]);
      await withVnids([0, 12]);
      expect((await sentOn("pod1", "pod2", pod2)).to).toEqual(["pod2"]);
    });

    test("in flat mode numbers mean nothing", async () => {
      await withVnids([11, 12], contexts.encap);
      const sentOn = packet(version, "gw0", ["peerPod", "pod2"], [gateway, pod2]);
      expect((await bridge.trace(sentOn, known)).to).toEqual(["pod2"]);
      expect((await between()).to).toEqual(["pod2"]);
      expect((await fromTunnel(99)).to).toEqual(["pod1"]);
      const sent = await bridge.trace(packet(version, "pod1", ["pod1", "peerPod"], [pod1, gateway]), known);
      expect([sent.to, sent.actions.includes("geneve(vni=0x0)")]).toEqual([["tun0"], true]);
    });
  });
});
