import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { describeWith } from "../support/requires.ts";
import { PipelineBridge } from "./pipeline-bridge.ts";
import { contexts, macs, nodeFlows, packet, pods, type Version } from "./pipeline-node.ts";

const { pod1, pod2, gateway, uplink, peer, virtual } = macs;
const known = "trk,est";
const reply = "trk,est,rpl";

describeWith("the pipeline's other modes", ["linux", "root", "openvswitch"], () => {
  let bridge: PipelineBridge;
  beforeAll(async () => {
    bridge = await PipelineBridge.start();
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  const fromPod = (version: Version, to: Parameters<typeof packet>[2][1], ...states: string[]) =>
    bridge.trace(packet(version, "pod1", ["pod1", to], [pod1, gateway]), ...states);

  describe.each<Version>([4, 6])("IPv%i", (version) => {
    test("noEncap: to pods of other nodes by this node's kernel, and from there in again", async () => {
      await bridge.install(nodeFlows(contexts.noEncap));
      for (const host of ["peerPod", "farPod"] as const) {
        const { to, final, way } = await fromPod(version, host, known);
        expect(to).toEqual(["gw0"]);
        expect(final).toContain(`dl_dst=${gateway}`);
        expect(final).toContain("nw_ttl=64");
        expect(final).not.toMatch(/tun_dst=\d*[1-9]/);
        expect(way).not.toContain("L3DecTTL");
      }
      const incoming = packet(version, "gw0", ["peerPod", "pod1"], [gateway, pod1]);
      expect((await bridge.trace(incoming, known)).to).toEqual(["pod1"]);
      const answer = packet(version, "pod1", ["pod1", "peerPod"], [pod1, gateway], "ct_mark=2");
      expect((await bridge.trace(answer, reply)).to).toEqual(["gw0"]);
    });

    test("hybrid: by the kernel to a node on the link, through the tunnel to others", async () => {
      await bridge.install(nodeFlows(contexts.hybrid));
      expect((await fromPod(version, "peerPod", known)).to).toEqual(["gw0"]);
      const far = await fromPod(version, "farPod", known);
      expect([far.to, far.final.includes("tun_dst=172.31.0.3")]).toEqual([["tun0"], true]);
      const incoming = packet(
        version,
        "tun0",
        ["farPod", "pod1"],
        [peer, virtual],
        "tun_src=172.31.0.3,tun_dst=172.30.0.1",
      );
      expect((await bridge.trace(incoming, known)).to).toEqual(["pod1"]);
    });

    test("networkPolicyOnly: by its address to a pod here, everything else to the node's kernel", async () => {
      await bridge.install(nodeFlows(contexts.networkPolicyOnly));
      const near = await bridge.trace(packet(version, "pod1", ["pod1", "pod2"], [pod1, virtual]), known);
      expect([near.to, near.final.includes(`dl_src=${gateway},dl_dst=${pod2}`)]).toEqual([["pod2"], true]);
      for (const host of ["peerPod", "outside", "node"] as const) {
        const { to, final } = await bridge.trace(packet(version, "pod1", ["pod1", host], [pod1, virtual]), known);
        expect([to, final.includes(`dl_dst=${gateway}`)]).toEqual([["gw0"], true]);
      }
      const incoming = packet(version, "gw0", ["outside", "pod1"], [gateway, virtual]);
      expect((await bridge.trace(incoming, known)).to).toEqual(["pod1"]);
      const spoofed = packet(version, "pod1", ["pod2", "outside"], [pod1, virtual]);
      expect((await bridge.trace(spoofed, known)).to).toEqual([]);
    });

    describe("with the uplink on the bridge", () => {
      test("what is for the node goes to it, what it sends goes out, and the rest of what comes is dropped", async () => {
        await bridge.install(nodeFlows(contexts.encapWithUplink));
        const way = "PipelineRootClassifier Classifier";
        const toNode = await bridge.trace(packet(version, "ul0", ["peer", "node"], [peer, uplink]));
        expect(toNode).toMatchObject({ way, to: ["LOCAL"] });
        const fromNode = await bridge.trace(packet(version, "LOCAL", ["node", "outside"], [uplink, peer]));
        expect(fromNode).toMatchObject({ way, to: ["ul0"] });
        for (const host of ["outside", "pod1", "gateway"] as const) {
          const stray = await bridge.trace(packet(version, "ul0", ["peer", host], [peer, uplink]));
          expect(stray).toMatchObject({ way, to: [] });
        }
        // An answer of DHCP, an advertisement of a router.
        const toAll = await bridge.trace(packet(version, "ul0", ["peer", "outside"], [peer, "ff:ff:ff:ff:ff:ff"]));
        expect(toAll).toMatchObject({ way, to: ["LOCAL"] });
        expect((await fromPod(version, "peerPod", known)).to).toEqual(["tun0"]);
      });

      test("noEncap: in from the uplink to pods, and out to a node on the link by its MAC", async () => {
        await bridge.install(nodeFlows(contexts.noEncapWithUplink));
        const { to, final, way } = await fromPod(version, "peerPod", known);
        expect(to).toEqual(["ul0"]);
        expect(final).toContain(`dl_src=${uplink},dl_dst=${peer}`);
        expect(final).toContain("nw_ttl=63");
        expect(way).toContain("L3Forwarding L3DecTTL");
        // Behind a router: the node's kernel knows the way.
        expect((await fromPod(version, "farPod", known)).to).toEqual(["gw0"]);
        const incoming = await bridge.trace(packet(version, "ul0", ["peerPod", "pod1"], [peer, uplink]), known);
        expect(incoming.to).toEqual(["pod1"]);
        expect(incoming.final).toContain(`dl_src=${gateway},dl_dst=${pod1}`);
        const lost = await bridge.trace(packet(version, "ul0", ["peerPod", "absentPod"], [peer, uplink]), known);
        expect(lost.to).toEqual([]);
        expect((await bridge.trace(packet(version, "ul0", ["peer", "node"], [peer, uplink]))).to).toEqual(["LOCAL"]);
      });

      test("noEncap: a pod's answer to the other node itself goes out, its own connection goes by the kernel", async () => {
        const answer = packet(version, "pod1", ["pod1", "peer"], [pod1, gateway], "ct_mark=4");
        const out = await bridge.trace(answer, reply);
        expect([out.to, out.final.includes(`dl_src=${uplink},dl_dst=${peer}`)]).toEqual([["ul0"], true]);
        expect((await fromPod(version, "peer", known)).to).toEqual(["gw0"]);
        // A connection that came by the gateway is answered there.
        const through = packet(version, "pod1", ["pod1", "peer"], [pod1, gateway], "ct_mark=2");
        expect((await bridge.trace(through, reply)).to).toEqual(["gw0"]);
      });

      test("hybrid: on the link by the uplink, else through the tunnel", async () => {
        await bridge.install(nodeFlows(contexts.hybridWithUplink));
        expect((await fromPod(version, "peerPod", known)).to).toEqual(["ul0"]);
        expect((await fromPod(version, "farPod", known)).to).toEqual(["tun0"]);
        const incoming = await bridge.trace(packet(version, "ul0", ["peerPod", "pod1"], [peer, uplink]), known);
        expect(incoming.to).toEqual(["pod1"]);
      });
    });
  });

  test("ARP of uplink and node passes both ways, that of pods does not", async () => {
    await bridge.install(nodeFlows(contexts.encapWithUplink));
    const arp = (at: string, fields: string) =>
      bridge.trace(`in_port=${at},arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,${fields}`);
    const way = "PipelineRootClassifier ARPSpoofGuard";
    expect(await arp("ul0", `dl_src=${peer},arp_spa=172.30.0.2,arp_tpa=172.30.0.1`)).toMatchObject({
      way,
      to: ["LOCAL"],
    });
    expect(await arp("LOCAL", `dl_src=${uplink},arp_spa=172.30.0.1,arp_tpa=172.30.0.2`)).toMatchObject({
      way,
      to: ["ul0"],
    });
    const asked = `dl_src=${pod1},arp_spa=10.10.1.2,arp_sha=${pod1},arp_tpa=172.30.0.1`;
    expect(await arp("pod1", asked)).toMatchObject({ to: [] });
  });

  test("networkPolicyOnly: whoever asks for a MAC gets the virtual one, but for its own address", async () => {
    await bridge.install(nodeFlows(contexts.networkPolicyOnly));
    const arp = (target: string) =>
      bridge.trace(`in_port=pod1,arp,dl_src=${pod1},arp_op=1,arp_spa=10.10.1.2,arp_sha=${pod1},arp_tpa=${target}`);
    const { to, final } = await arp("169.254.1.1");
    expect(to).toEqual(["IN_PORT"]);
    expect(final).toContain("arp_spa=169.254.1.1,arp_tpa=10.10.1.2,arp_op=2");
    expect(final).toContain(`arp_sha=${virtual},arp_tha=${pod1}`);
    expect((await arp("10.10.1.2")).to).toEqual([]);
  });

  test("networkPolicyOnly: so does who asks by neighbour discovery", async () => {
    await bridge.install(nodeFlows(contexts.networkPolicyOnly));
    const ask = (target: string) =>
      bridge.trace(
        `in_port=pod1,icmp6,icmpv6_type=135,nw_ttl=255,dl_src=${pod1},dl_dst=33:33:ff:00:00:01,ipv6_src=fd00:10:1::2,ipv6_dst=ff02::1:ff00:1,nd_target=${target},nd_sll=${pod1}`,
      );
    for (const target of ["fd00::1", "fd00:10:1::3"]) {
      const { to, final } = await ask(target);
      expect(to).toEqual(["IN_PORT"]);
      expect(final).toContain(`ipv6_src=${target},ipv6_dst=fd00:10:1::2`);
      expect(final).toContain(`nd_tll=${virtual}`);
    }
    expect((await ask("fd00:10:1::2")).to).toEqual([]);
  });

  test("what one asks the node's link-local address goes to it", async () => {
    await bridge.install(nodeFlows(contexts.encapWithUplink));
    const asked = `in_port=ul0,icmp6,icmpv6_type=135,dl_src=${peer},dl_dst=${uplink},ipv6_src=fe80::1,ipv6_dst=fe80::2`;
    expect((await bridge.trace(asked)).to).toEqual(["LOCAL"]);
  });

  test("a family that pods do not have stays out", async () => {
    const { gateway: both, ...rest } = contexts.encap;
    const four = {
      ...rest,
      gateway: { ...both, addresses: both.addresses.slice(0, 1) },
      podSubnets: rest.podSubnets.slice(0, 1),
    };
    const own = { ...pods.pod1, ips: pods.pod1.ips.slice(0, 1) };
    await bridge.install([...nodeFlows(four, []), ...podFlows(four, own)]);
    expect((await fromPod(4, "outside", known)).to).toEqual(["gw0"]);
    expect(await fromPod(6, "outside", known)).toMatchObject({ way: "PipelineRootClassifier", to: [] });
  });
});
