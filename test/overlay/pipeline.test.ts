import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { PipelineBridge } from "./pipeline-bridge.ts";
import { addressOf, contexts, macs, nodeFlows, packet, type Version } from "./pipeline-node.ts";

const { pod1, pod2, gateway, virtual } = macs;
const established = "trk,est";

const root = "PipelineRootClassifier";
const tracked = "ConntrackZone ConntrackState";
const unserved = "PreRoutingClassifier NodePortMark SessionAffinity ServiceLB EndpointDNAT";
/** Past the policies, without any. */
const judged = "EgressRule EgressDefaultRule";
const out = "TenantIsolation IngressRule IngressDefaultRule ConntrackCommit Output";
const checked = `${root} Classifier SpoofGuard PacketGuard UnSNAT`;

describeWith("the pipeline of a node with tunnels", ["linux", "root", "openvswitch"], () => {
  let bridge: PipelineBridge;
  beforeAll(async () => {
    bridge = await PipelineBridge.start();
    await bridge.install(nodeFlows(contexts.encap));
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  describe.each<Version>([4, 6])("IPv%i", (version) => {
    const tunnelTo = "tun_dst=172.30.0.2";

    test("between pods of the node: as on one link, remembered at its first packet", async () => {
      const sent = packet(version, "pod1", ["pod1", "pod2"], [pod1, pod2]);
      const first = await bridge.trace(sent);
      expect(first).toMatchObject({
        way: `${checked} ${tracked} ${unserved} ${judged} L3Forwarding L2ForwardingCalc ${out}`,
        to: ["pod2"],
      });
      expect(first.final).toContain(`dl_src=${pod1},dl_dst=${pod2}`);
      expect(first.final).toContain("nw_ttl=64");
      expect(first.text).toContain(`ct(commit,table=240,zone=${version === 4 ? 65520 : 65510},exec(`);
      const later = await bridge.trace(sent, established);
      expect(later.way).toBe(`${checked} ${tracked} ${judged} L3Forwarding L2ForwardingCalc ${out}`);
      expect(later.to).toEqual(["pod2"]);
      expect(later.text).not.toContain("commit");
    });

    test("a packet to the MAC of an earlier pod gets to the one that has the address now", async () => {
      const sent = packet(version, "pod1", ["pod1", "pod2"], [pod1, "0a:00:00:00:00:99"]);
      const { to, final } = await bridge.trace(sent, established);
      expect([to, final.includes(`dl_dst=${pod2}`)]).toEqual([["pod2"], true]);
    });

    test("another's address or MAC does not get past the guard", async () => {
      const stopped = { way: `${root} Classifier SpoofGuard`, to: [] };
      for (const [hosts, from] of [
        [["pod2", "peerPod"], pod1],
        [["outside", "peerPod"], pod1],
        [["gateway", "peerPod"], pod1],
        [["pod1", "peerPod"], pod2],
      ] as const) {
        expect(await bridge.trace(packet(version, "pod1", hosts, [from, gateway]))).toMatchObject(stopped);
      }
      // A port that nobody has told of.
      const stranger = packet(version, "pod3", ["pod1", "peerPod"], [pod1, gateway]);
      expect(await bridge.trace(stranger)).toMatchObject({ way: `${root} Classifier`, to: [] });
    });

    test("a packet of no connection is dropped", async () => {
      const sent = packet(version, "pod1", ["pod1", "pod2"], [pod1, pod2]);
      const stopped = { way: `${checked} ${tracked}`, to: [] };
      expect(await bridge.trace(sent, "trk,inv")).toMatchObject(stopped);
    });

    test("to a pod of another node: through the tunnel, one hop further", async () => {
      const sent = packet(version, "pod1", ["pod1", "peerPod"], [pod1, gateway]);
      const { way, to, final, actions } = await bridge.trace(sent, established);
      expect(way).toBe(`${checked} ${tracked} ${judged} L3Forwarding L3DecTTL SNATMark SNAT L2ForwardingCalc ${out}`);
      expect(to).toEqual(["tun0"]);
      for (const part of [tunnelTo, `dl_src=${gateway},dl_dst=${virtual}`, "nw_ttl=63"]) expect(final).toContain(part);
      expect(actions).toContain("ipv4(src=172.30.0.1,dst=172.30.0.2,");
      expect(actions).toContain("geneve(vni=0x0)");
      const far = await bridge.trace(packet(version, "pod1", ["pod1", "farPod"], [pod1, gateway]), established);
      expect(far.final).toContain("tun_dst=172.31.0.3");
    });

    test("out of the tunnel to a pod, and to nobody where there is none", async () => {
      const fields = "tun_src=172.30.0.2,tun_dst=172.30.0.1,tun_id=0";
      const sent = packet(version, "tun0", ["peerPod", "pod1"], ["0e:00:0a:0a:02:01", virtual], fields);
      const { way, to, final } = await bridge.trace(sent, established);
      expect(way).toBe(
        `${root} Classifier PacketGuard UnSNAT ${tracked} ${judged} L3Forwarding L3DecTTL SNATMark SNAT L2ForwardingCalc ${out}`,
      );
      expect(to).toEqual(["pod1"]);
      expect(final).toContain(`dl_src=${gateway},dl_dst=${pod1}`);
      for (const absent of ["absentPod", "outside", "farPod"] as const) {
        const lost = packet(version, "tun0", ["peerPod", absent], ["0e:00:0a:0a:02:01", virtual], fields);
        expect((await bridge.trace(lost, established)).to).toEqual([]);
      }
    });

    test("from the node to a pod of its own and to one of another, and the replies back to the node", async () => {
      const toPod = await bridge.trace(packet(version, "gw0", ["gateway", "pod1"], [gateway, pod1]), established);
      expect(toPod.to).toEqual(["pod1"]);
      expect(toPod.final).toContain("nw_ttl=64");
      const away = await bridge.trace(packet(version, "gw0", ["gateway", "peerPod"], [gateway, virtual]), established);
      expect(away.to).toEqual(["tun0"]);
      // The node's kernel has counted the hop.
      for (const part of [tunnelTo, "nw_ttl=64"]) expect(away.final).toContain(part);
      // To another address of the node than the gateway's, as the connection came from there.
      const reply = packet(version, "pod1", ["pod1", "node"], [pod1, gateway], "ct_mark=2");
      const back = await bridge.trace(reply, "trk,est,rpl");
      expect([back.to, back.way.includes("SNATMark")]).toEqual([["gw0"], true]);
    });

    test("to the gateway's address, from here and from elsewhere", async () => {
      const near = await bridge.trace(
        packet(version, "pod1", ["pod1", "gateway"], [pod1, gateway]),
        "trk,new",
        "trk,new",
      );
      expect(near.to).toEqual(["gw0"]);
      // It may be a reply to a connection whose source was translated.
      expect(near.text).toContain(`ct(table=70,zone=${version === 4 ? 65521 : 65511},nat)`);
      const fields = "tun_src=172.30.0.2,tun_dst=172.30.0.1";
      const far = packet(version, "tun0", ["peerPod", "gateway"], ["0e:00:0a:0a:02:01", virtual], fields);
      const { to, final } = await bridge.trace(far, "trk,est", "trk,est");
      expect([to, final.includes(`dl_dst=${gateway}`)]).toEqual([["gw0"], true]);
    });

    test("to the world outside: to the node's kernel, which counts the hop itself", async () => {
      const { way, to, final } = await bridge.trace(
        packet(version, "pod1", ["pod1", "outside"], [pod1, gateway]),
        established,
      );
      expect(way).toBe(`${checked} ${tracked} ${judged} L3Forwarding L2ForwardingCalc ${out}`);
      expect([to, final.includes("nw_ttl=64")]).toEqual([["gw0"], true]);
      const back = await bridge.trace(packet(version, "gw0", ["outside", "pod1"], [gateway, pod1]), "trk,est,rpl");
      expect(back.to).toEqual(["pod1"]);
    });

    test("pods that are not there get nothing", async () => {
      const { to } = await bridge.trace(packet(version, "pod1", ["pod1", "absentPod"], [pod1, "0a:00:00:00:00:99"]));
      expect(to).toEqual([]);
    });
  });

  test("ARP is answered in the place of who has the address, also for peers' gateways, and goes to nobody", async () => {
    const arp = (at: string, from: readonly [string, string], target: string, more = "") =>
      bridge.trace(
        `in_port=${at},arp,dl_src=${from[1]},dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=${from[0]},arp_sha=${from[1]},arp_tpa=${target}${more}`,
      );
    const own = [addressOf("pod1", 4), pod1] as const;
    const way = `${root} ARPSpoofGuard ARPResponder`;
    for (const [at, from, target, mac] of [
      ["pod1", own, "10.10.1.3", pod2],
      ["pod1", own, "10.10.1.1", gateway],
      ["gw0", ["10.10.1.1", gateway], "10.10.1.2", pod1],
    ] as const) {
      const answered = await arp(at, from, target);
      expect(answered).toMatchObject({ way, to: ["IN_PORT"] });
      expect(answered.final).toContain(
        `arp_spa=${target},arp_tpa=${from[0]},arp_op=2,arp_sha=${mac},arp_tha=${from[1]}`,
      );
    }
    expect(await arp("pod1", own, "10.10.1.99")).toMatchObject({ way, to: [] });
    // It asks who else has its own address.
    expect((await arp("pod1", own, "10.10.1.2")).to).toEqual([]);
    const answered = await arp("gw0", ["10.10.1.1", gateway], "10.10.2.1");
    expect(answered).toMatchObject({ way, to: ["IN_PORT"] });
    expect(answered.final).toContain(
      `dl_src=${virtual},dl_dst=${gateway},arp_spa=10.10.2.1,arp_tpa=10.10.1.1,arp_op=2,arp_sha=${virtual},arp_tha=${gateway}`,
    );
    const stopped = { way: `${root} ARPSpoofGuard`, to: [] };
    expect(await arp("pod1", ["10.10.1.3", pod1], "10.10.1.1")).toMatchObject(stopped);
    expect(await arp("pod1", ["10.10.1.2", pod2], "10.10.1.1")).toMatchObject(stopped);
    expect(await arp("pod1", ["10.10.1.1", gateway], "10.10.1.3")).toMatchObject(stopped);
    expect(await arp("tun0", own, "10.10.1.3")).toMatchObject(stopped);
  });

  test("neighbour discovery is answered in the place of who has the address; nobody else says anything", async () => {
    const nd = (at: string, type: number, fields: string) =>
      bridge.trace(`in_port=${at},icmp6,icmpv6_type=${type},nw_ttl=255,${fields}`);
    const ask = (at: string, from: string, mac: string, target: string, sll = mac) =>
      nd(
        at,
        135,
        `dl_src=${mac},dl_dst=33:33:ff:00:00:03,ipv6_src=${from},ipv6_dst=ff02::1:ff00:3,nd_target=${target},nd_sll=${sll}`,
      );
    const tell = (at: string, from: string, mac: string, to: string, target: string, tll: string) =>
      nd(
        at,
        136,
        `dl_src=${mac},dl_dst=${to},ipv6_src=${from},ipv6_dst=fd00:10:1::3,nd_target=${target},nd_tll=${tll}`,
      );
    const way = `${root} Classifier SpoofGuard IPv6`;
    const linkLocal = "fe80::800:aff:fe0a:102";
    for (const from of ["fd00:10:1::2", linkLocal]) {
      for (const [target, mac] of [
        ["fd00:10:1::3", pod2],
        ["fd00:10:1::1", gateway],
        ["fe80::c00:aff:fe0a:101", gateway],
      ] as const) {
        const answered = await ask("pod1", from, pod1, target);
        expect(answered).toMatchObject({ way: `${way} IPv6`, to: ["IN_PORT"] });
        expect(answered.final).toContain(`ipv6_src=${target},ipv6_dst=${from}`);
        expect(answered.final).toMatch(new RegExp(`icmp_type=136.*nd_target=${target}.*nd_tll=${mac}`));
      }
    }
    for (const target of ["fd00:10:1::2", linkLocal]) {
      const answered = await ask("gw0", "fe80::c00:aff:fe0a:101", gateway, target);
      expect(answered).toMatchObject({ way: `${way} IPv6`, to: ["IN_PORT"] });
      expect(answered.final).toContain(`nd_tll=${pod1}`);
    }
    expect(await ask("pod1", "fd00:10:1::2", pod1, "fd00:10:1::99")).toMatchObject({ way, to: [] });
    const stopped = { way: `${root} Classifier SpoofGuard`, to: [] };
    for (const lie of [
      ask("pod1", "fd00:10:1::3", pod1, "fd00:10:1::1"),
      ask("pod1", "fd00:10:1::2", pod1, "fd00:10:1::1", pod2),
      ask("pod1", "fe80::1", pod1, "fd00:10:1::1"),
      tell("pod1", "fd00:10:1::2", pod1, pod2, "fd00:10:1::1", pod1),
      tell("pod1", linkLocal, pod1, gateway, linkLocal, pod1),
      tell("gw0", "fd00:10:1::1", gateway, pod1, "fd00:10:1::1", gateway),
      tell("pod1", "fd00:10:1::2", pod1, pod2, "fd00:10:1::2", gateway),
      // A router's advertisement and a redirect.
      nd("pod1", 134, `dl_src=${pod1},dl_dst=${pod2},ipv6_src=fd00:10:1::2,ipv6_dst=fd00:10:1::3`),
      nd("pod1", 137, `dl_src=${pod1},dl_dst=${pod2},ipv6_src=fd00:10:1::2,ipv6_dst=fd00:10:1::3`),
    ]) {
      expect(await lie).toMatchObject(stopped);
    }
  });

  test("what is neither ARP nor IP goes nowhere, and nothing comes in by LOCAL or an uplink that is not there", async () => {
    const frame = `dl_src=${pod1},dl_dst=${pod2},dl_type=0x88cc`;
    expect(await bridge.trace(`in_port=pod1,${frame}`)).toMatchObject({ way: root, to: [] });
    for (const at of ["LOCAL", "ul0"] as const) {
      const sent = packet(4, at, ["outside", "pod1"], [macs.peer, pod1]);
      expect(await bridge.trace(sent)).toMatchObject({ way: `${root} Classifier`, to: [] });
    }
  });
});
