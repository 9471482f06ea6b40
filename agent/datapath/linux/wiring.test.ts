import { beforeEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import { formatMac } from "../../../shared/net/mac.ts";
import {
  bridge,
  cidr,
  failing,
  freshNode,
  hostOf,
  lines,
  ownerOf,
  podOf,
  requestFor,
  started,
} from "../../../test/fakes/netlink/bridge-node.ts";
import { present } from "../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { Errno } from "../../protocols/netlink/mod.ts";
import type { DataPath } from "../datapath.ts";
import { linkGroup } from "./host-links.ts";
import type { HostPort } from "./host-port.ts";
import { planOf } from "./plan.ts";
import { openSandbox } from "./pod-end.ts";
import { PodPairs } from "./pod-pairs.ts";
import { wire } from "./wiring.ts";

vi.mock(import("../../protocols/netlink/mod.ts"), async (original) => {
  const { netlinkInMemory } = await import("../../../test/fakes/netlink/mocks.ts");
  return netlinkInMemory(await original());
});
vi.mock(import("../../platform/run-program.ts"), async (original) => {
  const { programsInMemory } = await import("../../../test/fakes/netlink/mocks.ts");
  return programsInMemory(await original());
});
vi.mock(import("node:fs"), async (original) => {
  const { hostFiles } = await import("../../../test/fakes/netlink/host-files.ts");
  return hostFiles(await original()) as never;
});

beforeEach(freshNode);
const own = () => present.node.own;
const eth0 = (sandboxId = "a") => podOf(sandboxId).named("eth0")!;
const addresses = (sandboxId = "a") =>
  podOf(sandboxId)
    .addresses.map(({ ip }) => ip.toHex())
    .toSorted();
const [ten, eleven] = ["0a4d000a", "0a4d000b"];

async function attached(): Promise<DataPath> {
  const dataPath = await started();
  await dataPath.attach(requestFor("a", 10));
  return dataPath;
}

describe("an attachment that stands", () => {
  test.each<readonly [string, () => unknown]>([
    ["as it was made", () => undefined],
    ["and that somebody has set down", (): unknown => (hostOf("a").up = false)],
    ["and whose end in the pod is down", (): unknown => (eth0().up = false)],
    ["off the bridge", () => own().leave(hostOf("a"))],
    ["without its second name", () => hostOf("a").altNames.clear()],
    ["without an address", (): unknown => (podOf("a").addresses = [])],
    [
      "with an address that another plugin gave it",
      () => void podOf("a").addresses.push({ ...podOf("a").addresses[0]!, ip: Uint8Array.of(192, 0, 2, 1) }),
    ],
  ])("is kept by an ADD that comes again, and put right: %s", async (_name, change) => {
    await using dataPath = await attached();
    const [before, peer] = [hostOf("a").index, eth0().index];
    change();
    const { interfaces, ips } = await dataPath.attach(requestFor("a", 10));
    const host = hostOf("a");
    expect([host.index, eth0().index, own().links.size]).toEqual([before, peer, 3]);
    expect(host).toMatchObject({ up: true, master: bridge().index, group: linkGroup.inService });
    expect(host.altNames.size).toBe(1);
    expect(eth0().up).toBe(true);
    expect(addresses()).toContain(ten);
    expect(interfaces.map(({ name, mac }) => [name, mac])).toEqual([
      ["br0", formatMac(bridge().mac)],
      [host.name, formatMac(host.mac)],
      ["eth0", formatMac(eth0().mac)],
    ]);
    expect(ips.map(({ interface: at }) => at)).toEqual([2, 2]);
  });

  test.each<readonly [string, () => unknown, number]>([
    ["with an address that it has no more", () => undefined, 11],
    ["whose other end has another name", (): unknown => (eth0().name = "eth9"), 10],
    ["that an earlier call gave up", (): unknown => (hostOf("a").group = linkGroup.toDelete), 10],
  ])("is made anew: one %s", async (_name, change, host) => {
    await using dataPath = await attached();
    const before = hostOf("a").index;
    change();
    await dataPath.attach(requestFor("a", host));
    expect(hostOf("a").index).not.toBe(before);
    expect([own().links.size, podOf("a").links.size]).toEqual([3, 2]);
    expect(addresses()).toEqual([host === 10 ? ten : eleven, expect.any(String)]);
  });

  test("is made anew in another sandbox of the same name", async () => {
    await using dataPath = await attached();
    const before = hostOf("a").index;
    const elsewhere = "/run/netns/a2";
    present.node.addPod(elsewhere);
    const { container, ...request } = requestFor("a", 10);
    await dataPath.attach({ ...request, container: { ...container, netns: elsewhere } });
    expect(hostOf("a").index).not.toBe(before);
    expect(podOf("a").named("eth0")).toBeUndefined();
    expect(podOf("a2").named("eth0")).toBeDefined();
  });
});

test("an owner has one pair, also where no name of it tells that it has one already", async () => {
  await using dataPath = await attached();
  const before = hostOf("a");
  const elsewhere = "/run/netns/a2";
  present.node.addPod(elsewhere);
  const { container, ...request } = requestFor("a", 10);
  const pod = { namespace: "default", name: "web", uid: "" };
  await dataPath.attach({ ...request, pod, container: { ...container, netns: elsewhere } });
  expect(own().links.has(before.index)).toBe(false);
  expect(own().links.size).toBe(3);
  expect(hostOf("a").name).toMatch(/^web-/);
  expect(hostOf("a")).toMatchObject({ up: true, master: bridge().index, group: linkGroup.inService });
  expect(hostOf("a").altNames).toEqual(before.altNames);
  expect([podOf("a").named("eth0"), podOf("a2").named("eth0")?.up]).toEqual([undefined, true]);
});

describe("a new attachment", () => {
  test("has a MAC that the request names, also where one stands, and else keeps its own", async () => {
    await using dataPath = await attached();
    const before = formatMac(eth0().mac);
    const mac = "02:00:5e:10:00:01";
    const { interfaces } = await dataPath.attach(requestFor("a", 10, { mac }));
    expect([interfaces[2]?.mac, formatMac(eth0().mac)]).toEqual([mac, mac]);
    expect(before).not.toBe(mac);
    expect((await dataPath.attach(requestFor("a", 10))).interfaces[2]?.mac).toBe(mac);
    expect(await failing(dataPath.attach(requestFor("a", 10, { mac: "ff:ff:ff:ff:ff:ff" })))).toContain("ff:ff");
  });

  test("is told of where its address is outside of its network", async () => {
    await using dataPath = await started();
    const request = requestFor("a", 10);
    const ips = [...request.ipam.ips, { address: cidr("192.0.2.9/24") }];
    await dataPath.attach({ ...request, ipam: { ...request.ipam, ips } });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('"address":"192.0.2.9/24"');
  });

  test("has nobody keep an earlier pod's MAC for its address", async () => {
    await using dataPath = await started();
    const stale = {
      index: bridge().index,
      family: 2,
      state: 0x80,
      dst: Uint8Array.of(10, 77, 0, 10),
      mac: Uint8Array.of(2, 0, 0, 0, 0, 1),
    };
    const other = { ...stale, dst: Uint8Array.of(10, 77, 0, 99) };
    own().neighbours.push(stale, other);
    await dataPath.attach(requestFor("a", 10));
    expect(own().neighbours.filter(({ family }) => family === 2)).toEqual([other]);
    expect(podOf("a").sysctls.get("/proc/sys/net/ipv6/conf/eth0/ndisc_notify")).toBe("1");
    expect(own().sysctls.get(`/proc/sys/net/ipv6/conf/${hostOf("a").name}/disable_ipv6`)).toBe("1");
  });

  test("in a sandbox that has an interface of the name is refused, and leaves it", async () => {
    await using dataPath = await started();
    const request = requestFor("a", 10);
    const theirs = podOf("a").add({ name: "eth0", kind: "dummy" });
    expect(await failing(dataPath.attach(request))).toContain(
      `Cannot create the interface "eth0": the sandbox has one of that name that is not ours, of kind "dummy" with index ${theirs.index}`,
    );
    expect(podOf("a").named("eth0")).toBe(theirs);
    expect(own().links.size).toBe(2);
  });

  test("on a node that has an interface of the name is refused, and leaves it", async () => {
    await using dataPath = await attached();
    const { name } = hostOf("a");
    await dataPath.detach(ownerOf("a"));
    const theirs = own().add({ name });
    expect(await failing(dataPath.attach(requestFor("a", 10)))).toContain(
      `Cannot create the interface "${name}": the node has one of that name that is not ours, of kind "hardware" with index ${theirs.index}`,
    );
    expect(own().named(name)).toBe(theirs);
    expect(podOf("a").named("eth0")).toBeUndefined();
  });

  test("takes a name that is just being given up", async () => {
    await using dataPath = await attached();
    const { name } = hostOf("a");
    await dataPath.detach(ownerOf("a"));
    own().add({ name, group: linkGroup.toDelete });
    await dataPath.attach(requestFor("a", 10));
    expect(hostOf("a")).toMatchObject({ name, group: linkGroup.inService });
  });

  test("is undone where the kernel refuses a part of it", async () => {
    await using dataPath = await started();
    const request = requestFor("a", 10);
    present.node.before = (action) => {
      if (action.startsWith("add the route")) throw new Refusal(Errno.ENETUNREACH);
    };
    expect(await failing(dataPath.attach(request))).toContain("ENETUNREACH");
    present.node.before = () => undefined;
    expect([own().links.size, podOf("a").links.size]).toEqual([2, 1]);
    await dataPath.attach(request);
    expect(addresses()).toContain(ten);
  });

  test("gets IPv6 in a sandbox that has it turned off, where it has such an address", async () => {
    await using dataPath = await started();
    const request = requestFor("a", 10);
    const file = "/proc/sys/net/ipv6/conf/eth0/disable_ipv6";
    let refusals = 0;
    present.node.before = (action) => {
      const isOff = podOf("a").sysctls.get(file) !== "0" || refusals === 0;
      if (!action.includes("fd77::") || !action.includes("eth0") || !isOff) return;
      refusals++;
      throw new Refusal(Errno.EACCES);
    };
    await dataPath.attach(request);
    present.node.before = () => undefined;
    expect([refusals > 0, podOf("a").sysctls.get(file)]).toEqual([true, "0"]);
    expect(addresses()).toHaveLength(2);
  });
});

test("what a switch is asked for goes out before the pod's end is set up", async () => {
  await using _node = await started();
  await using pairs = new PodPairs(createLogger("error", () => undefined));
  const request = requestFor("a", 10);
  using namespace = openSandbox(pairs.tools.kernel, request.container.netns);
  let addressesThen: number | undefined;
  const side: HostPort = {
    bridge: { name: "br-int" },
    gateway: bridge(),
    master: 0,
    finishesChecksums: true,
    group: linkGroup.inService,
    portOptions: () => [],
    connect: async () => {
      // As many steps as there may be from here to the writing of a request.
      for (let step = 0; step < 50; step++) await undefined;
      addressesThen = podOf("a").addresses.length;
    },
  };
  const network = { name: request.owner.network, subnets: [] };
  await wire(pairs.tools, planOf(network, request), namespace, side);
  expect(addressesThen).toBe(0);
  expect(podOf("a").addresses).not.toHaveLength(0);
});
