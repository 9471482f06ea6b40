import { afterAll, beforeAll, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { address, arp, EtherType, ethernet, ipv4, Protocol, udp } from "../support/frames/frame.ts";
import {
  type Frame,
  forgedArp,
  forgedIpv6,
  forgedPackets,
  honestFrames,
  type Party,
} from "../support/frames/pod-frames.ts";
import type { RawLink } from "../support/frames/raw-link.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { openDataPath } from "./bridge-fixture.ts";
import { gatewayOf, marked, marksAt, type WiredPod, wirePod } from "./bridge-pods.ts";

describeWith("what a pod sends into a kernel bridge", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;
  let pod: WiredPod;
  let victim: WiredPod;
  let gateway: Party & { readonly wire: RawLink };

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-ho-");
    // It cuts off what lies behind packets, by which frames are known again here.
    const filters = ["iptables", "ip6tables", "arptables"].map((name) => `net.bridge.bridge-nf-call-${name}=0`);
    await sandbox.node(`sysctl -q -e -w ${filters.join(" ")}`);
    dataPath = openDataPath();
    await dataPath.start();
    pod = await wirePod(sandbox, dataPath, "mallory", 66);
    victim = await wirePod(sandbox, dataPath, "victim", 10);
    gateway = await gatewayOf(sandbox);
  });
  afterAll(async () => {
    for (const { wire } of [pod, victim, gateway]) wire[Symbol.dispose]();
    await dataPath[Symbol.asyncDispose]();
    await sandbox[Symbol.asyncDispose]();
  });

  /**
   * Which of these arrive, at another pod or at the node. A plain packet behind them says when all that were to come have
   * come: a wire keeps the order.
   */
  async function arrivedOf(frames: readonly Frame[]): Promise<readonly string[]> {
    const last = marked(
      ethernet(
        { from: pod.mac, to: "ff:ff:ff:ff:ff:ff" },
        EtherType.ipv4,
        ipv4(
          { from: pod.ip4, to: "10.77.0.255" },
          Protocol.udp,
          udp({ from: pod.ip4, to: "10.77.0.255" }, { from: 1, to: 9 }, []),
        ),
      ),
    );
    const sent = frames.map(([name, frame]) => ({ name, ...marked(frame) }));
    for (const wire of [victim.wire, gateway.wire]) wire.received();
    for (const { frame } of [...sent, last]) pod.wire.send(frame);
    const seen = { victim: new Set<string>(), gateway: new Set<string>() };
    await expect
      .poll(() => {
        for (const mark of marksAt(victim.wire)) seen.victim.add(mark);
        for (const mark of marksAt(gateway.wire)) seen.gateway.add(mark);
        return seen.victim.has(last.mark) && seen.gateway.has(last.mark);
      })
      .toBe(true);
    return sent.filter(({ mark }) => seen.victim.has(mark) || seen.gateway.has(mark)).map(({ name }) => name);
  }

  /** As well to the node, whose table of neighbours is everybody's; but for those that only their destination makes forged. */
  const toNode = (frames: readonly Frame[]): readonly Frame[] =>
    frames.flatMap(([name, frame]) => {
      if (name.includes("bridges' group")) return [];
      const other = frame.slice();
      other.set(gateway.mac.split(":").map((pair) => Number.parseInt(pair, 16)));
      return [[`${name}, to the node`, other] as const];
    });

  test("its own packets, ARP, neighbour discovery and reports of groups arrive", async () => {
    const frames = honestFrames(pod, victim);
    expect(await arrivedOf(frames)).toEqual(frames.map(([name]) => name));
  });

  test("what is for bridges themselves is no way around them to the node", async () => {
    for (let group = 0; group < 16; group++) {
      const to = `01:80:c2:00:00:${group.toString(16).padStart(2, "0")}`;
      const question = { operation: 1, senderMac: pod.mac, sender: victim.ip4, target: gateway.ip4 } as const;
      pod.wire.send(ethernet({ from: pod.mac, to }, EtherType.arp, arp(question)));
    }
    expect(await sandbox.ping(pod.netns, victim.ip4)).toBe(true);
    const answers = pod.wire.received().filter((frame) => frame[12] === 8 && frame[13] === 6 && frame[21] === 2);
    expect(answers.filter((frame) => Buffer.from(frame.subarray(38, 42)).equals(address(victim.ip4)))).toEqual([]);
    expect(await sandbox.node(`ip neigh show dev ${pod.host} nud all`)).toBe("");
  });

  test.each([
    ["ARP for others", forgedArp],
    ["packets of others, of routers, servers and bridges", forgedPackets],
    ["neighbour discovery for others, plain or hidden, and other IPv6 that is not its own", forgedIpv6],
  ] as const)("dropped: %s", async (_name, forged) => {
    const frames = forged(pod, victim, gateway);
    expect(await arrivedOf([...frames, ...toNode(frames)])).toEqual([]);
  });
});
