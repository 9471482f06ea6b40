import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { markSnat, Priority, rememberSource, step } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { connectionMarks, registers, zones } from "../../agent/datapath/ovs/pipeline/registers.ts";
import { tables } from "../../agent/datapath/ovs/pipeline/tables.ts";
import { ct, type Flow, load, match } from "../../agent/protocols/openflow/mod.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { describeWith } from "../support/requires.ts";
import { PipelineBridge } from "./pipeline-bridge.ts";
import { addressOf, contexts, type Host, macs, nodeFlows, packet, type Version } from "./pipeline-node.ts";

const { pod1, gateway, virtual } = macs;
const isNew = ["trk,new", "trk,new", "trk,new", "trk,new"] as const;
const known = "trk,est";
const reply = "trk,est,rpl";

/** What stands for a service: all that is for `outside` is translated, in place of a choice of endpoints, to this host. */
function service(version: Version, endpoint: Host): readonly Flow[] {
  const address = parseIp(addressOf(endpoint, version))!;
  const { service: mark } = connectionMarks;
  const translate = ct({
    commit: true,
    table: tables.L3Forwarding,
    zone: zones[version].main,
    nat: { side: "dst", from: address },
    exec: [load(mark, 1), rememberSource],
  });
  const met = match()
    .family(version)
    .destination(parseIp(addressOf("outside", version))!);
  const itself = match().family(version).ctState("+new+trk").bits(mark, 1).source(address).destination(address);
  return [
    step("ServiceLB", Priority.normal, met, [load(registers.rewriteMac, 1), translate]),
    step("SNATMark", Priority.low, itself, [markSnat(version, "hairpin")]),
  ];
}

describeWith("source translation for services in the pipeline", ["linux", "root", "openvswitch"], () => {
  let bridge: PipelineBridge;
  beforeAll(async () => {
    bridge = await PipelineBridge.start();
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  describe.each<Version>([4, 6])("IPv%i", (version) => {
    const install = (endpoint: Host, context: PipelineContext = contexts.encap) =>
      bridge.install([...nodeFlows(context), ...service(version, endpoint)]);
    const from = (at: "pod1" | "gw0", source: Host, ...states: readonly string[]) => {
      const mac = at === "pod1" ? ([pod1, gateway] as const) : ([gateway, virtual] as const);
      return bridge.trace(packet(version, at, [source, "outside"], mac), ...states);
    };
    const translated = (host: Host): string => {
      const address = addressOf(host, version);
      // The node itself has the other ports of its gateway's address.
      if (host !== "gateway") return `nat(src=${address})`;
      return `nat(src=${version === 4 ? address : `[${address}]`}:1024-32767)`;
    };

    test("from the node to a pod, here or elsewhere: as it is", async () => {
      for (const [endpoint, port] of [
        ["pod1", "pod1"],
        ["peerPod", "tun0"],
      ] as const) {
        await install(endpoint);
        const { to, text } = await from("gw0", "gateway", ...isNew);
        expect([to, text.includes("nat(src=")]).toEqual([[port], false]);
        expect(text).toContain(`nat(dst=${addressOf(endpoint, version)})`);
      }
    });

    test("from the node to where only its kernel knows the way: back to it, from the virtual host", async () => {
      await install("node");
      const { to, text, way } = await from("gw0", "gateway", ...isNew);
      expect(to).toEqual(["IN_PORT"]);
      expect(text).toContain(translated("virtual"));
      expect(way).toContain("L3Forwarding SNATMark SNAT L2ForwardingCalc");
    });

    test("from a client outside to a pod elsewhere: from the gateway, that the answer comes back here", async () => {
      await install("peerPod");
      const { to, text } = await from("gw0", "farPod", ...isNew);
      expect([to, text.includes(translated("gateway"))]).toEqual([["tun0"], true]);
      await install("pod1");
      expect((await from("gw0", "farPod", ...isNew)).text).not.toContain("nat(src=");
      await install("peerPod", contexts.noEncapWithUplink);
      const direct = await from("gw0", "farPod", ...isNew);
      expect([direct.to, direct.text.includes(translated("gateway"))]).toEqual([["ul0"], true]);
    });

    test("from a pod to itself: from the gateway, back where it came from", async () => {
      await install("pod1");
      const { to, text } = await from("pod1", "pod1", ...isNew);
      expect([to, text.includes(translated("gateway"))]).toEqual([["IN_PORT"], true]);
    });

    test("later packets keep the translation, and answers lose it before anything else", async () => {
      await install("node");
      const zone = version === 4 ? 65521 : 65511;
      const later = packet(version, "gw0", ["gateway", "node"], [gateway, virtual], "ct_mark=0x72");
      const on = await bridge.trace(later, known, known);
      expect(on.text).toContain(`ct(table=180,zone=${zone},nat)`);
      expect(on.to).toEqual(["IN_PORT"]);
      for (const host of ["virtual", "gateway"] as const) {
        const answer = packet(version, "gw0", ["node", host], [gateway, virtual]);
        const back = await bridge.trace(answer, reply, reply);
        expect(back.text).toContain(`ct(table=70,zone=${zone},nat)`);
      }
      const other = await bridge.trace(packet(version, "gw0", ["node", "pod1"], [gateway, virtual]), reply);
      expect(other.text).not.toContain(`zone=${zone}`);
    });
  });
});
