import { beforeEach, describe, expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { PacketFilterInMemory } from "../../../test/fakes/netlink/packet-filter.ts";
import { decide } from "../../../test/fakes/netlink/packet-verdict.ts";
import { ethernet, ipv4, ipv6 } from "../../../test/support/frames/frame.ts";
import { Errno } from "../../protocols/netlink/mod.ts";
import { PresentPods } from "./present-pods.ts";

const network = { bridge: "br0", subnets: [parseCidr("10.77.0.0/24")!, parseCidr("fd77::/64")!] };
const table = "inet pipette-br0";
const [forwarded, sent] = [2, 3];

let filter: PacketFilterInMemory;
let pods: PresentPods;
const fresh = (): PresentPods => new PresentPods(filter as never, network);
beforeEach(() => {
  filter = new PacketFilterInMemory();
  pods = fresh();
});

const owner = (sandboxId: string) => ({ network: "pods", sandboxId, ifname: "eth0" });
const pod = (sandboxId: string, ...ips: readonly string[]) => ({
  owner: owner(sandboxId),
  ips: ips.map((text) => parseIp(text)!),
});

/** What becomes of a packet to this address. */
function fateOf(to: string, hook = forwarded, oifname = "br0"): string {
  const ends = { from: "02:00:00:00:00:01", to: "02:00:00:00:00:02" };
  const frame = to.includes(":")
    ? ethernet(ends, 0x86dd, ipv6({ from: "fd00::1", to }, 59, []))
    : ethernet(ends, 0x0800, ipv4({ from: "192.0.2.1", to }, 17, []));
  return decide(filter.tables.get(table)!, hook, { oifname, frame }).does;
}

describe("packets to addresses of pods", () => {
  test.each([
    ["an address that a pod has", "10.77.0.5", "accept"],
    ["one of its family", "fd77::5", "accept"],
    ["one that no pod has", "10.77.0.6", "reject"],
    ["one of its family that no pod has", "fd77::6", "reject"],
    ["every host of the subnet", "10.77.0.255", "accept"],
    ["the last address of a family without broadcasts", "fd77::ffff:ffff:ffff:ffff", "reject"],
    ["another subnet", "10.77.1.6", "accept"],
    ["another subnet of its family", "fd77:0:0:1::6", "accept"],
  ])("from pods, from outside and from the node, to %s", (_name, to, does) => {
    pods.restore([pod("a", "10.77.0.5", "fd77::5")]);
    pods.install();
    expect([fateOf(to), fateOf(to, sent), fateOf(to, forwarded, "eth0")]).toEqual([does, does, "accept"]);
    expect([...(filter.tables.get(table)?.chains.values() ?? [])].map(({ hook }) => hook?.priority)).toEqual([0, 0]);
  });
});

describe("the addresses that pods have", () => {
  beforeEach(() => pods.install());
  const isPresent = (...addresses: readonly string[]) => addresses.map((to) => fateOf(to) === "accept");

  test("come before a pod is reached and go with it, but one that another pod has by now", () => {
    pods.admit(pod("a", "10.77.0.5"));
    pods.admit(pod("b", "10.77.0.5", "10.77.0.6"));
    pods.dismiss(owner("a"));
    expect(isPresent("10.77.0.5", "10.77.0.6")).toEqual([true, true]);
    pods.dismiss(owner("b"));
    pods.dismiss(owner("b"));
    expect(isPresent("10.77.0.5", "10.77.0.6")).toEqual([false, false]);
  });

  test("of a pod that is wired anew with others are those, and the same ones stay", () => {
    pods.admit(pod("a", "10.77.0.5", "10.77.0.6"));
    pods.admit(pod("a", "10.77.0.6", "10.77.0.7"));
    expect(isPresent("10.77.0.5", "10.77.0.6", "10.77.0.7")).toEqual([false, true, true]);
  });

  test("of an earlier agent's pods that have gone are taken by the next install", () => {
    pods.admit(pod("a", "10.77.0.5"));
    const next = fresh();
    next.restore([pod("b", "10.77.0.6")]);
    next.install();
    expect(isPresent("10.77.0.5", "10.77.0.6")).toEqual([false, true]);
  });

  test("that somebody deleted with the rules are missing, and come back with the next pod", () => {
    pods.admit(pod("a", "10.77.0.5"));
    expect(pods.missing()).toEqual([]);
    filter.tables.clear();
    expect(pods.missing()).toEqual(['the packet rules about pods are not all there in the table "inet pipette-br0"']);
    pods.admit(pod("b", "10.77.0.6"));
    expect([isPresent("10.77.0.5", "10.77.0.6"), pods.missing()]).toEqual([[true, true], []]);
    filter.tables.get(table)?.sets.get("pods4")?.elements.clear();
    expect(pods.missing()).toEqual(['the packet rules about pods lack 2 elements in the table "inet pipette-br0"']);
  });

  test("that the kernel refuses otherwise are an error", () => {
    filter.before = () => {
      throw new Refusal(Errno.EPERM);
    };
    expect(() => pods.admit(pod("a", "10.77.0.5"))).toThrow("EPERM");
  });
});
