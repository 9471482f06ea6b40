import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TunnelType } from "../../agent/config/ovs-config.ts";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { behind, Extension } from "../support/frames/extension-headers.ts";
import { fragments, isLaterFragment, longDatagram } from "../support/frames/fragments.ts";
import {
  address,
  bytes,
  checksum,
  EtherType,
  ethernet,
  icmp6,
  ipv4,
  ipv6,
  Protocol,
  u16,
  u32,
  udp,
} from "../support/frames/frame.ts";
import { icmp4 } from "../support/frames/icmp.ts";
import { describeWith } from "../support/requires.ts";
import {
  datagram,
  type Forbidden,
  forbiddenFrames,
  loopbackFrames,
  openPorts,
  type Party,
  routerFrames,
  taggedFrames,
} from "./forbidden-frames.ts";
import { FrameBridge, type Place, type Sentinel } from "./frame-bridge.ts";
import { ports } from "./pipeline-bridge.ts";
import { addressOf, contexts, type Host, macs, nodeFlows, pods } from "./pipeline-node.ts";

const party = (host: Host, mac: string): Party => ({ mac, 4: addressOf(host, 4), 6: addressOf(host, 6) });
const pod1 = party("pod1", macs.pod1);
const pod2 = party("pod2", macs.pod2);
const gateway = party("gateway", macs.gateway);
/** As a pod of the other node is met: behind its node's gateway. */
const peerPod = party("peerPod", "0e:00:0a:0a:02:01");
const families = [4, 6] as const;
/** Each MAC that means something on the bridge, and one that does not. */
const knownMacs = [macs.gateway, macs.peer, macs.pod2, macs.uplink, macs.virtual, "02:00:00:00:00:99"];

type Mode = keyof typeof contexts;
const modes = Object.keys(contexts) as Mode[];
const contextOf = (mode: Mode): PipelineContext => contexts[mode];
const sameProject = [pods.pod1, { ...pods.pod2, vnid: pods.pod1.vnid }];
const isRouted = ({ mode, uplink }: PipelineContext): boolean =>
  uplink !== undefined && (mode === "noEncap" || mode === "hybrid");

/** Where a frame that is let through comes out, for each port that it may come in by. */
const sentinels = {
  pod1: [pod1, pod2, "pod2"],
  tun0: [peerPod, { ...pod1, mac: macs.virtual }, "pod1"],
  ul0: [{ ...peerPod, mac: macs.peer }, { ...pod1, mac: macs.uplink }, "pod1"],
  gw0: [gateway, pod1, "pod1"],
} as const satisfies Partial<Record<Place, readonly [Party, Party, Place]>>;
type Entrance = keyof typeof sentinels;

type Seen = ReadonlyMap<Place, readonly Uint8Array[]>;
/** Without ports that later fragments alone came out by: the switch lets those go after 15 s, whatever is sent then. */
const withFirst = (seen: Seen): Seen => new Map([...seen].filter(([, came]) => !came.every(isLaterFragment)));
const hexOf = (seen: Seen) => [...seen].map(([place, came]) => [place, ...came.map((frame) => frame.toHex())]);

describeWith("frames through the pipeline", ["linux", "root", "openvswitch"], () => {
  let bridge: FrameBridge;
  let sent = 0;
  beforeAll(async () => {
    bridge = await FrameBridge.start();
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  /** The last bytes of each are its own. */
  const filling = () => bytes(new Uint8Array(12), u32(++sent));
  function sentinel(at: Entrance): Sentinel {
    const [from, to, arrivesAt] = sentinels[at];
    const link = { from: from.mac, to: to.mac };
    const frame = datagram(link, { from: from[4], to: to[4] }, [openPorts.from, openPorts.to], filling());
    return { frame, arrivesAt };
  }

  const install = (context: PipelineContext) => bridge.install(nodeFlows(context, sameProject));
  /** The ports that these frames came out by; of a packet in fragments, the first of them. */
  const reached = async (from: Entrance, ...frames: readonly Uint8Array[]): Promise<Place[]> => [
    ...withFirst(await bridge.send(from, frames, sentinel(from))).keys(),
  ];

  /** What got somewhere, and where. */
  async function escaped(from: Entrance, all: readonly Forbidden[]): Promise<string[]> {
    await reached(from);
    const found: string[] = [];
    for (const { name, frames } of all) {
      const places = await reached(from, ...frames);
      if (places.length > 0) found.push(`${name}: ${places.join(", ")}`);
    }
    return found;
  }

  const toAddress = (from: Party, mac: string, to: string, ports: readonly [number, number] = [40_003, 80]) =>
    datagram({ from: from.mac, to: mac }, { from: from[to.includes(":") ? 6 : 4], to }, ports, filling());

  describe.each(modes)("%s", (mode) => {
    const context = contextOf(mode);
    beforeAll(() => install(context));

    test("what a pod may not send gets to nobody", async () => {
      expect.soft(await escaped("pod1", forbiddenFrames(pod1, pod2))).toEqual([]);
      expect.soft(await escaped("pod1", forbiddenFrames(pod1, gateway))).toEqual([]);
    });

    if (context.tunnel !== undefined)
      test("nor does it out of the tunnel", async () => {
        const virtual = { ...pod1, mac: macs.virtual };
        expect.soft(await escaped("tun0", forbiddenFrames(peerPod, virtual))).toEqual([]);
        expect.soft(await escaped("tun0", forbiddenFrames(peerPod, { ...gateway, mac: macs.virtual }))).toEqual([]);
      });

    if (isRouted(context))
      test("nor does it by the uplink, but for what is the node's own", async () => {
        const peer = { ...peerPod, mac: macs.peer };
        const found = await escaped("ul0", forbiddenFrames(peer, { ...pod1, mac: macs.uplink }));
        expect(found.filter((line) => !line.endsWith(": LOCAL"))).toEqual([]);
      });

    test("by the gateway come no tags, no routers' words and no loopback addresses", async () => {
      const all = [...taggedFrames(gateway, pod1), ...routerFrames(gateway, pod1), ...loopbackFrames(gateway, pod1)];
      expect(await escaped("gw0", all)).toEqual([]);
    });

    test("to the world outside a pod gets by the node's kernel alone, whichever MAC it names", async () => {
      for (const family of families) {
        for (const mac of knownMacs) {
          const seen = await bridge.send(
            "pod1",
            [toAddress(pod1, mac, addressOf("outside", family))],
            sentinel("pod1"),
          );
          const whole = withFirst(seen);
          expect([mac, ...whole.keys()], JSON.stringify(hexOf(whole))).toEqual([mac, "gw0"]);
          const [frame] = seen.get("gw0") ?? [];
          expect(Buffer.from(frame?.subarray(0, 6) ?? []).toString("hex")).toBe(macs.gateway.replaceAll(":", ""));
        }
      }
    });

    if (mode !== "networkPolicyOnly")
      test("to a group a pod sends nothing, whichever MAC it names", async () => {
        for (const to of ["224.0.0.251", "255.255.255.255", "ff02::fb"])
          for (const mac of [...knownMacs, "ff:ff:ff:ff:ff:ff", "33:33:00:00:00:fb"])
            expect([to, mac, ...(await reached("pod1", toAddress(pod1, mac, to)))]).toEqual([to, mac]);
      });

    if (mode !== "networkPolicyOnly")
      test("an address of the node's subnets that nobody has leads nowhere", async () => {
        const senders: readonly (readonly [Entrance, Party])[] = [
          ["pod1", pod1],
          ["gw0", gateway],
          ...(context.tunnel === undefined ? [] : [["tun0", peerPod] as const]),
          ...(isRouted(context) ? [["ul0", { ...peerPod, mac: macs.peer }] as const] : []),
        ];
        for (const [at, from] of senders) {
          for (const to of [
            addressOf("absentPod", 4),
            addressOf("absentPod", 6),
            "10.10.1.0",
            "10.10.1.255",
            "fd00:10:1::",
          ]) {
            for (const mac of knownMacs)
              expect([at, to, mac, ...(await reached(at, toAddress(from, mac, to)))]).toEqual([at, to, mac]);
          }
        }
      });

    if (context.tunnel !== undefined)
      test("nothing that looks like the tunnel's gets to a node", async () => {
        for (const family of families) {
          for (const host of ["node", "peer", "outside", "gateway"] as const) {
            for (const mac of knownMacs) {
              const frame = toAddress(pod1, mac, addressOf(host, family), [40_004, 6081]);
              expect([host, mac, ...(await reached("pod1", frame))]).toEqual([host, mac]);
            }
            const ends = { from: pod1[family], to: addressOf(host, family) };
            const pieces = longDatagram(ends, { from: 40_004, to: 6081 }, ++sent).map((piece) =>
              ethernet({ from: pod1.mac, to: macs.gateway }, family === 4 ? EtherType.ipv4 : EtherType.ipv6, piece),
            );
            expect([host, ...(await reached("pod1", ...pieces))]).toEqual([host]);
          }
          const forged = toAddress(peerPod, macs.virtual, addressOf("gateway", family), [40_004, 6081]);
          expect(await reached("tun0", forged)).toEqual([]);
          // Pods among themselves may.
          expect(await reached("pod1", toAddress(pod1, macs.pod2, addressOf("pod2", family), [40_004, 6081]))).toEqual([
            "pod2",
          ]);
        }
      });

    test("what pods do send still passes", async () => {
      for (const [name, frames] of harmless(pod1, pod2)) {
        expect([name, ...(await reached("pod1", ...frames))]).toEqual([name, "pod2"]);
      }
    });
  });

  test.each<readonly [TunnelType, number, number | undefined, (frame: Ends4) => Uint8Array]>([
    ["vxlan", Protocol.udp, undefined, (ends) => udp(ends, { from: 40_005, to: 4789 }, filling())],
    ["geneve", Protocol.udp, 9999, (ends) => udp(ends, { from: 40_005, to: 9999 }, filling())],
    ["gre", Protocol.gre, undefined, () => bytes([0, 0, 0x65, 0x58], filling())],
    ["stt", Protocol.tcp, undefined, (ends) => tcpOpening(ends, 7471)],
  ])("%s: the same, by its own protocol and port", async (type, protocol, port, payload) => {
    const tunnel = { ofport: ports.tun0, type, ...(port === undefined ? {} : { port }) };
    for (const context of [
      { ...contexts.encap, tunnel },
      { ...contexts.hybridWithUplink, tunnel },
    ]) {
      await install(context);
      for (const to of [addressOf("peer", 4), addressOf("outside", 4)]) {
        for (const mac of knownMacs) {
          const ends = { from: pod1[4], to };
          const frame = ethernet({ from: pod1.mac, to: mac }, EtherType.ipv4, ipv4(ends, protocol, payload(ends)));
          expect([to, mac, ...(await reached("pod1", frame))]).toEqual([to, mac]);
        }
      }
    }
  });

  test.each(families)("IPv%i: a pod's answer to a node on the link is no way to its tunnel's port", async (family) => {
    await install(contexts.hybridWithUplink);
    const peer = { mac: macs.peer, 4: addressOf("peer", 4), 6: addressOf("peer", 6) };
    for (const [port, ways] of [
      [9000, ["ul0"]],
      [6081, []],
    ] as const) {
      expect(await reached("ul0", toAddress(peer, macs.uplink, pod1[family], [port, 5000]))).toEqual(["pod1"]);
      expect([port, ...(await reached("pod1", toAddress(pod1, macs.gateway, peer[family], [5000, port])))]).toEqual([
        port,
        ...ways,
      ]);
    }
  });

  test("tagged frames of the node itself pass between its interface and its own port", async () => {
    for (const mode of ["encapWithUplink", "noEncapWithUplink", "hybridWithUplink"] as const) {
      await install(contexts[mode]);
      const node = { mac: macs.uplink, 4: addressOf("node", 4), 6: addressOf("node", 6) };
      const peer = { mac: macs.peer, 4: addressOf("peer", 4), 6: addressOf("peer", 6) };
      for (const [from, to, sender, receiver] of [
        ["ul0", "LOCAL", peer, node],
        ["LOCAL", "ul0", node, peer],
      ] as const) {
        for (const { name, frames } of taggedFrames(sender, receiver)) {
          const last = datagram(
            { from: sender.mac, to: receiver.mac },
            { from: sender[4], to: receiver[4] },
            [1, 2],
            filling(),
          );
          const seen = await bridge.send(from, frames, { frame: last, arrivesAt: to });
          expect([mode, name, ...seen.keys()]).toEqual([mode, name, to]);
        }
      }
    }
  });

  /** A guard must not stop what pods are used to, in fragments and with options too. */
  function harmless(sender: Party, target: Party): readonly (readonly [string, readonly Uint8Array[]])[] {
    const link = { from: sender.mac, to: target.mac };
    const [ends4, ends6] = [4, 6].map((family) => ({ from: sender[family as 4], to: target[family as 4] })) as [
      Ends4,
      Ends4,
    ];
    const frame6 = (packet: Uint8Array) => ethernet(link, EtherType.ipv6, packet);
    const frame4 = (packet: Uint8Array) => ethernet(link, EtherType.ipv4, packet);
    const echo = icmp6(ends6, 128, bytes([0, 9, 0, 1], new Uint8Array(2000)));
    const short = udp(ends6, { from: 40_006, to: 53 }, filling());
    return [
      ["datagram in two fragments", longDatagram(ends6, { from: 40_006, to: 53 }, ++sent).map(frame6)],
      ["datagram of IPv4 in two fragments", longDatagram(ends4, { from: 40_006, to: 53 }, ++sent).map(frame4)],
      ["ping in two fragments", fragments(ends6, Protocol.icmp6, echo, 1400, ++sent).map(frame6)],
      ["datagram behind options", [frame6(behind(ends6, [Extension.hopByHop, Extension.destination], 17, short))]],
      ["datagram in one fragment", [frame6(behind(ends6, [Extension.fragment], 17, short))]],
      ["ESP", [frame6(ipv6(ends6, Extension.esp, bytes(u32(5), u32(1), filling())))]],
      ["ping", [frame4(ipv4(ends4, 1, icmp4(8, bytes([0, 7, 0, 1], filling()))))]],
      ["to a server of DHCP", [datagram(link, ends4, [68, 67], filling())]],
      ["to a server of DHCPv6", [datagram(link, ends6, [546, 547], filling())]],
      ["between relays of DHCP", [datagram(link, ends4, [67, 67], filling())]],
      ["from an unlucky port", [datagram(link, ends4, [67, 69], filling())]],
    ];
  }
});

interface Ends4 {
  readonly from: string;
  readonly to: string;
}

/** The first segment of a connection, with its checksum. */
function tcpOpening({ from, to }: Ends4, port: number): Uint8Array {
  const segment = bytes([0x9c, 0x45], u16(port), u32(1), u32(0), [0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
  const pseudo = bytes(address(from), address(to), [0, Protocol.tcp], u16(segment.length));
  segment.set(u16(checksum(bytes(pseudo, segment))), 16);
  return segment;
}
