import { describe, expect, test } from "vitest";
import { formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { PacketFilterInMemory } from "../../../test/fakes/netlink/packet-filter.ts";
import { decide } from "../../../test/fakes/netlink/packet-verdict.ts";
import { ethernet, ipv4 } from "../../../test/support/frames/frame.ts";
import {
  type Frame,
  forgedArp,
  forgedIpv6,
  forgedPackets,
  honestFrames,
  type Party,
} from "../../../test/support/frames/pod-frames.ts";
import { Errno } from "../../protocols/netlink/mod.ts";
import { linkLocalOf } from "../addresses.ts";
import { type GuardedPod, PortGuard } from "./port-guard.ts";

const network = {
  name: "pods",
  bridge: "br0",
  subnets: [parseCidr("10.77.0.0/24")!, parseCidr("fd77::/64")!],
  hairpin: false,
  masquerade: false,
};
const bridge = { name: "br0", mac: "02:00:00:00:00:01" };

const party = (number: number): Party => {
  const mac = `02:00:00:00:00:${String(number).padStart(2, "0")}`;
  return { mac, ip4: `10.77.0.${number}`, ip6: `fd77::${number}`, linkLocal: formatIp(linkLocalOf(mac)) };
};
const [gateway, pod, victim] = [party(1), party(10), party(11)];

/** A pod whose port has its own number. */
const podAt = (port: number, { mac, ip4, ip6 }: Party): GuardedPod => ({
  owner: { network: "pods", sandboxId: `s${port}`, ifname: "eth0" },
  port,
  mac,
  ips: [parseIp(ip4)!, parseIp(ip6)!],
});

const filterOf = (): PacketFilterInMemory => new PacketFilterInMemory();
const guardOn = (filter: PacketFilterInMemory, isStanding = (_port: number): boolean => true): PortGuard =>
  new PortGuard(filter as never, network, isStanding);

function comesIn(filter: PacketFilterInMemory, port: number, frame: Uint8Array) {
  const table = filter.tables.get("bridge pipette-br0");
  if (table === undefined) throw new Error("No packet rules stand");
  return decide(table, 0, { iif: port, frame });
}

describe("frames that come in by a pod's port", () => {
  const filter = filterOf();
  const guard = guardOn(filter);
  guard.guard([podAt(10, pod), podAt(11, victim)]);

  const named = (frames: readonly Frame[]) => frames.map(([name, frame]) => [name, frame] as const);

  test.each(named(honestFrames(pod, victim)))("may: %s", (_name, frame) => {
    expect(comesIn(filter, 10, frame).does).toBe("accept");
  });
  test.each(
    named([
      ...forgedArp(pod, victim, gateway),
      ...forgedPackets(pod, victim, gateway),
      ...forgedIpv6(pod, victim, gateway),
    ]),
  )("may not: %s", (_name, frame) => {
    expect(comesIn(filter, 10, frame).does).toBe("drop");
  });
  test("what comes in by somebody else's port is not looked at", () => {
    for (const [, frame] of forgedArp(pod, victim, gateway))
      expect(comesIn(filter, 9, frame)).toEqual({ does: "accept", isCounted: false });
  });
});

describe("the pods that a guard knows", () => {
  const owner = (sandboxId: string) => ({ network: "pods", sandboxId, ifname: "eth0" });
  const speaks = (of: Party): Uint8Array => honestFrames(of, victim)[0]![1];
  const goesOut = (filter: PacketFilterInMemory, ip4: string) => {
    const frame = ethernet({ from: gateway.mac, to: pod.mac }, 0x0800, ipv4({ from: gateway.ip4, to: ip4 }, 6, []));
    return [2, 3].map((hook) => decide(filter.tables.get("inet pipette-br0")!, hook, { oifname: "br0", frame }).does);
  };
  const present = (filter: PacketFilterInMemory) => [
    ...filter.elements("inet pipette-br0", "pods4"),
    ...filter.elements("inet pipette-br0", "pods6"),
  ];

  test("are known by port and owner, and again by the next agent, without what every kernel adds", () => {
    const filter = filterOf();
    const guard = guardOn(filter);
    guard.guard([]);
    guard.announce();
    expect(guard.standing()).toEqual(new Map());
    guard.admit(podAt(10, pod), bridge);
    expect(guard.at(10)).toEqual(podAt(10, pod));
    expect(guard.portOf(owner("s10"))).toBe(10);
    expect(guard.portOf(owner("s11"))).toBeUndefined();
    const { mac, ips } = podAt(10, pod);
    const next = guardOn(filter);
    expect(next.standing()).toEqual(new Map([[10, { mac, ips }]]));
    expect(next.guardedAt(10)).toEqual({ mac, ips });
    expect(next.guardedAt(11)).toBeUndefined();
    expect(guard.missing()).toEqual([]);
  });

  test("are those that the next agent names: what stood of others goes, also where the node sends to", () => {
    const filter = filterOf();
    const before = guardOn(filter);
    before.guard([podAt(10, pod), podAt(11, victim)]);
    before.announce();
    expect(goesOut(filter, pod.ip4)).toEqual(["accept", "accept"]);
    const guard = guardOn(filter);
    guard.guard([podAt(11, victim)]);
    guard.announce();
    expect(comesIn(filter, 11, speaks(victim)).does).toBe("accept");
    expect([...guard.standing().keys()]).toEqual([11]);
    expect(goesOut(filter, pod.ip4)).toEqual(["reject", "reject"]);
    expect(goesOut(filter, victim.ip4)).toEqual(["accept", "accept"]);
    expect(goesOut(filter, "10.77.0.255")).toEqual(["accept", "accept"]);
    expect(goesOut(filter, "10.78.0.10")).toEqual(["accept", "accept"]);
  });

  test("one that goes leaves nothing, but addresses that somebody has already", () => {
    const filter = filterOf();
    const guard = guardOn(filter);
    guard.guard([podAt(10, pod), { ...podAt(12, party(12)), ips: [parseIp(pod.ip4)!] }]);
    guard.announce();
    guard.dismiss(10);
    guard.dismiss(10);
    expect(guard.at(10)).toBeUndefined();
    expect([...guard.standing().keys()]).toEqual([12]);
    expect(filter.elements("bridge pipette-br0", "ports")).toHaveLength(1);
    expect(present(filter)).toEqual(["0a4d000a"]);
    guard.dismiss(12);
    expect(present(filter)).toEqual([]);
  });

  test("one that comes again with other addresses keeps none of the old", () => {
    const filter = filterOf();
    const guard = guardOn(filter);
    guard.guard([podAt(10, pod)]);
    guard.announce();
    guard.admit({ ...podAt(10, pod), ips: [parseIp("10.77.0.20")!] }, bridge);
    expect(comesIn(filter, 10, speaks(pod)).does).toBe("drop");
    expect(comesIn(filter, 10, speaks({ ...pod, ip4: "10.77.0.20" })).does).toBe("accept");
  });

  test("two of one MAC are refused, and the bridge's is nobody's; one whose interface has gone gives way", () => {
    const filter = filterOf();
    const standing = new Set([10]);
    const guard = guardOn(filter, (port) => standing.has(port));
    guard.guard([podAt(10, pod)]);
    guard.announce();
    const twin = { ...podAt(12, pod), ips: [parseIp("10.77.0.12")!] };
    expect(() => guard.admit(twin, bridge)).toThrow(`"${pod.mac}": sandbox "s10" has it`);
    expect(guard.at(12)).toBeUndefined();
    guard.admit(podAt(10, pod), bridge);
    expect(() => guard.admit(podAt(13, party(1)), bridge)).toThrow('the bridge "br0" has it');
    expect([...guard.standing().keys()]).toEqual([10]);
    standing.clear();
    guard.admit(twin, bridge);
    expect([...guard.standing().keys()]).toEqual([12]);
  });

  test.each([undefined, podAt(10, { ...pod, ip4: "10.77.0.20" })])(
    "a refusal of the kernel changes nothing",
    (before) => {
      const filter = filterOf();
      const guard = guardOn(filter);
      guard.guard(before === undefined ? [] : [before]);
      guard.announce();
      filter.before = (action) => {
        if (action.startsWith("add elements")) throw new Refusal(Errno.ENOSPC);
      };
      expect(() => guard.admit(podAt(10, pod), bridge)).toThrow("ENOSPC");
      expect(guard.at(10)).toEqual(before);
    },
  );

  test("rules that somebody has flushed are told, and come back with the next pod", () => {
    const filter = filterOf();
    const guard = guardOn(filter);
    guard.guard([podAt(10, pod)]);
    guard.announce();
    filter.tables.clear();
    expect(guard.missing()).toEqual([
      'the packet rules about pods are not all there in the table "bridge pipette-br0"',
      'the packet rules about pods are not all there in the table "inet pipette-br0"',
    ]);
    expect(guard.guardedAt(10)).toBeUndefined();
    guard.admit(podAt(11, victim), bridge);
    expect(guard.missing()).toEqual([]);
    expect(guard.guardedAt(10)).toEqual(podAt(10, pod));
    expect(comesIn(filter, 10, speaks(pod)).does).toBe("accept");
  });

  test("elements and single rules that somebody has taken are missed, and a pod without one is not whole", () => {
    const filter = filterOf();
    const guard = guardOn(filter);
    guard.guard([podAt(10, pod)]);
    guard.announce();
    filter.tables.get("inet pipette-br0")!.sets.get("pods6")!.elements.clear();
    expect(guard.missing()).toEqual(['the packet rules about pods lack 1 elements in the table "inet pipette-br0"']);
    expect(guard.guardedAt(10)).toBeUndefined();
    guard.announce();
    filter.tables.get("bridge pipette-br0")!.chains.get("pod-arp")!.rules.pop();
    expect(guard.missing()).toEqual([
      'the packet rules about pods are not all there in the table "bridge pipette-br0"',
    ]);
  });

  test("what rules drop for want of a better one is counted", () => {
    const filter = filterOf();
    guardOn(filter).guard([podAt(10, pod)]);
    const frames = [...forgedArp(pod, victim, gateway), ...forgedPackets(pod, victim, gateway)];
    for (const [, frame] of frames) expect(comesIn(filter, 10, frame)).toMatchObject({ does: "drop", isCounted: true });
  });
});
