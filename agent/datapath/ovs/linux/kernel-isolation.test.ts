import { beforeEach, describe, expect, test, vi } from "vitest";
import { NodeInMemory, present } from "../../../../test/fakes/netlink/kernel.ts";
import { decide } from "../../../../test/fakes/netlink/packet-verdict.ts";
import { ethernet, ipv4, ipv6 } from "../../../../test/support/frames/frame.ts";
import { getLink, type NetlinkSocket, readLink } from "../../../protocols/netlink/mod.ts";
import { linkGroup } from "../../linux/host-links.ts";
import { KernelIsolation, removeKernelIsolation } from "./kernel-isolation.ts";

vi.mock(import("node:fs"), async (original) => {
  const { hostFiles } = await import("../../../../test/fakes/netlink/host-files.ts");
  return hostFiles(await original()) as never;
});

let node: NodeInMemory;
let socket: NetlinkSocket;
let isolation: KernelIsolation;
beforeEach(() => {
  node = new NodeInMemory();
  present.node = node;
  socket = node.socketIn(node.own) as unknown as NetlinkSocket;
  isolation = fresh();
});

const fresh = () => new KernelIsolation(node.filter as never, socket, "gw0");
const arpIgnore = (name: string) => node.own.sysctls.get(`/proc/sys/net/ipv4/conf/${name}/arp_ignore`);
const linkOf = (name: string) => socket.get(getLink({ name }), readLink);

const ends = { from: "02:00:00:00:00:01", to: "02:00:00:00:00:02" };
const four = ethernet(ends, 0x0800, ipv4({ from: "10.0.0.1", to: "10.0.0.2" }, 17, [0, 0]));
const six = ethernet(ends, 0x86dd, ipv6({ from: "fd00::1", to: "fd00::2" }, 59, []));
const toGroup = ethernet(ends, 0x86dd, ipv6({ from: "fd00::1", to: "ff02::1" }, 59, []));
const isLocal = 2;
const hears = (family: "inet" | "arp", passing: Partial<Parameters<typeof decide>[2]>) =>
  decide(node.filter.tables.get(`${family} pipette-beside-gw0`)!, 0, { frame: four, ...passing }).does === "accept";

describe("a node's kernel beside a switch in user space", () => {
  test("hears nothing from pods' ports, those that are being made included, and all from others", () => {
    const port = node.own.add({ name: "ve0" });
    isolation.install([linkOf("ve0")]);
    for (const family of ["inet", "arp"] as const) {
      expect(hears(family, { iifgroup: linkGroup.onSwitch })).toBe(false);
      expect(hears(family, { iifgroup: linkGroup.beingMade })).toBe(false);
      expect(hears(family, { iifgroup: linkGroup.inService })).toBe(true);
    }
    expect(port.group).toBe(linkGroup.onSwitch);
    expect([arpIgnore("ve0"), node.own.sysctls.get("/proc/sys/net/ipv4/conf/ve0/forwarding")]).toEqual(["8", "0"]);
    expect(isolation.missing([linkOf("ve0")])).toEqual([]);
  });

  test("hears by the switch's own interfaces what is for itself there, and groups of IPv6", () => {
    node.own.add({ name: "nic0" });
    isolation.install([]);
    isolation.leaveToSwitch(["nic0"]);
    const by = (iifname: string, frame: Uint8Array, destination = 1) => hears("inet", { iifname, frame, destination });
    expect([by("nic0", four), by("nic0", four, isLocal), by("nic1", four)]).toEqual([false, true, true]);
    expect([by("nic0", six), by("nic0", six, isLocal), by("nic1", six)]).toEqual([false, true, true]);
    expect([by("nic0", toGroup), by("nic", six)]).toEqual([true, true]);
    expect(arpIgnore("nic0")).toBe("1");
  });

  test("hears all again by what the switch has left, and knows what an earlier agent has set", () => {
    for (const name of ["nic0", "nic1"]) node.own.add({ name });
    isolation.install([]);
    isolation.leaveToSwitch(["nic0"]);
    const next = fresh();
    next.install([]);
    next.leaveToSwitch(["nic1", "absent"]);
    expect([arpIgnore("nic0"), arpIgnore("nic1")]).toEqual(["0", "1"]);
    expect(hears("inet", { iifname: "nic0" })).toBe(true);
    expect(hears("inet", { iifname: "nic1" })).toBe(false);
    expect(hears("inet", { iifname: "absent" })).toBe(false);
  });

  test("is asked for nothing where nothing has changed", () => {
    node.own.add({ name: "nic0" });
    isolation.install([]);
    isolation.leaveToSwitch(["nic0"]);
    const asked: string[] = [];
    node.filter.before = (action) => void asked.push(action);
    isolation.leaveToSwitch(["nic0"]);
    expect(asked).toEqual([]);
  });

  test("is told of by what is amiss, and put right by the next start", () => {
    for (const name of ["nic0", "ve0"]) node.own.add({ name });
    isolation.install([]);
    isolation.leaveToSwitch(["nic0"]);
    node.filter.tables.clear();
    node.own.sysctls.set("/proc/sys/net/ipv4/conf/nic0/arp_ignore", "0");
    expect(isolation.missing([linkOf("ve0")])).toEqual([
      'the packet rules about pods are not all there in the table "inet pipette-beside-gw0"',
      'the packet rules about pods are not all there in the table "arp pipette-beside-gw0"',
      `the node's kernel answers ARP for all of its addresses on "nic0", beside the switch`,
      `the node's kernel hears "ve0" beside the switch`,
    ]);
    isolation.install([linkOf("ve0")]);
    expect(isolation.missing([linkOf("ve0")])).toEqual([]);
    expect(hears("inet", { iifname: "nic0" })).toBe(false);
  });

  test("is let alone by a clean-up, as often as it comes", () => {
    node.own.add({ name: "nic0" });
    isolation.install([]);
    isolation.leaveToSwitch(["nic0"]);
    for (let i = 0; i < 2; i++) removeKernelIsolation(node.filter as never, socket, "gw0");
    expect([node.filter.tables.size, arpIgnore("nic0")]).toEqual([0, "0"]);
  });
});
