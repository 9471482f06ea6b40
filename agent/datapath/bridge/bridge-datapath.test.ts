import { beforeEach, describe, expect, test, vi } from "vitest";
import { formatCidr } from "../../../shared/net/ip.ts";
import { formatMac } from "../../../shared/net/mac.ts";
import {
  bridge,
  failing,
  freshNode,
  hostOf,
  lines,
  network,
  open,
  ownerOf,
  podOf,
  problems,
  requestFor,
  started,
} from "../../../test/fakes/netlink/bridge-node.ts";
import { present } from "../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { Errno } from "../../protocols/netlink/mod.ts";
import type { DataPath } from "../datapath.ts";
import type { BridgeNetwork } from "./options.ts";

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
const node = () => present.node;

/** Elements about pods in the kernel's packet rules. */
const elements = (set: string) => node().filter.elements("bridge pipette-br0", set).length;
const addressesOf = (dataPath: DataPath, sandboxId: string) =>
  dataPath.addresses(ownerOf(sandboxId)).then((all) => all.map(formatCidr).toSorted());

describe("the node", () => {
  test("gets a bridge of the network, which is up, has the gateways, and believes no routers", async () => {
    await using dataPath = await started();
    expect(bridge()).toMatchObject({ kind: "bridge", up: true, mtu: 1500 });
    expect(node().own.addresses.map(({ index, prefix, ip }) => [index, prefix, ip.toHex()])).toEqual([
      [bridge().index, 24, "0a4d0001"],
      [bridge().index, 64, "fd770000000000000000000000000001"],
    ]);
    const { sysctls } = node().own;
    expect(sysctls.get("/proc/sys/net/ipv4/ip_forward")).toBe("1");
    expect(sysctls.get("/proc/sys/net/ipv6/conf/all/forwarding")).toBe("1");
    for (const name of ["accept_ra", "accept_redirects", "accept_dad"])
      expect(sysctls.get(`/proc/sys/net/ipv6/conf/br0/${name}`)).toBe("0");
    expect(await problems(dataPath)).toEqual([]);
    expect(await dataPath.degraded()).toEqual([]);
    expect(dataPath.addressesInUse(ownerOf("a"))).toEqual([]);
  });

  test("keeps a bridge that stands, with what others gave it, and gets what it lacks", async () => {
    const standing = node().own.add({ name: "br0", kind: "bridge", mtu: 1500 });
    node().own.addresses.push({ index: standing.index, family: 2, prefix: 24, ip: Uint8Array.of(10, 77, 0, 1) });
    node().own.addresses.push({ index: standing.index, family: 2, prefix: 32, ip: Uint8Array.of(192, 0, 2, 9) });
    await using dataPath = await started({ mtu: 1400 });
    expect(bridge()).toMatchObject({ index: standing.index, up: true, mtu: 1400, mac: standing.mac });
    expect(node().own.addresses).toHaveLength(3);
    expect(await problems(dataPath)).toEqual([]);
  });

  test("keeps its bridge's MTU where the network names none, and gets the network's for a new one", async () => {
    node().own.add({ name: "br0", kind: "bridge", mtu: 1450 });
    await (await started())[Symbol.asyncDispose]();
    expect(bridge().mtu).toBe(1450);
    node().own.remove(bridge().index);
    await (await started({ mtu: 9000 }))[Symbol.asyncDispose]();
    expect(bridge().mtu).toBe(9000);
  });

  test("turns IPv6 on for a bridge that has it off", async () => {
    const standing = node().own.add({ name: "br0", kind: "bridge" });
    node().own.sysctls.set("/proc/sys/net/ipv6/conf/br0/disable_ipv6", "1");
    await using _dataPath = await started();
    expect(node().own.addresses.filter(({ index }) => index === standing.index)).toHaveLength(2);
  });

  test("is not set up where something else has the bridge's name, or the kernel gives none", async () => {
    const standing = node().own.add({ name: "br0", kind: "veth" });
    await using dataPath = open();
    expect(await failing(dataPath.start())).toContain(
      `102 Cannot use the interface "br0" as bridge: it is of kind "veth"`,
    );
    expect(await problems(dataPath)).toContain('50 the interface "br0" is not a bridge');
    node().own.remove(standing.index);
    node().before = (action) => {
      if (action.startsWith("create the bridge")) throw new Refusal(Errno.EPERM);
    };
    expect(await failing(dataPath.start())).toMatch(/^102 Cannot prepare the bridges: .*EPERM/);
  });

  test("is told of names that are there twice", () => {
    const twice = (changes: Partial<BridgeNetwork>) => () =>
      open({}, { networks: [network, { ...network, ...changes }] });
    expect(twice({ name: "other" })).toThrow('bridge "br0" is there twice');
    expect(twice({ bridge: "br1" })).toThrow('name "pods" is there twice');
    expect(twice({ name: "other", bridge: "br1" })).not.toThrow();
  });

  test("says what it lacks, by whether pods are there already", async () => {
    await using dataPath = await started();
    const { own } = node();
    bridge().up = false;
    own.addresses = own.addresses.filter(({ family }) => family !== 2);
    own.sysctls.set("/proc/sys/net/ipv4/ip_forward", "0");
    node().filter.tables.get("inet pipette-br0")!.chains.get("postrouting")!.rules.pop();
    const missing = [
      'the bridge "br0" is down',
      'the bridge "br0" lacks the gateway address "10.77.0.1/24"',
      "IPv4 forwarding is off on the node",
      '10 of 11 packet rules stand in the table "pipette-br0"',
    ];
    const sorted = async () => (await problems(dataPath)).toSorted();
    expect(await sorted()).toEqual(missing.map((each) => `50 ${each}`).toSorted());
    bridge().up = true;
    await dataPath.attach(requestFor("a", 10));
    bridge().up = false;
    expect(await sorted()).toEqual(missing.map((each) => `51 ${each}`).toSorted());
    own.sysctls.set("/proc/sys/net/ipv6/conf/br0/accept_ra", "1");
    expect(await dataPath.degraded()).toEqual([expect.stringContaining('"br0" believes routers on its link')]);
    await dataPath.start();
    expect(await sorted()).toEqual([]);
    own.remove(bridge().index);
    expect(await sorted()).toEqual(['51 the bridge "br0" is missing']);
  });

  test("says what pods are not kept from where it has no nft, and misses no rules that it could not load", async () => {
    node().nftRefusal = { stdout: "", stderr: "", failure: '"nft" is not installed', isAbsent: true };
    await using dataPath = await started({ masquerade: false });
    expect(await dataPath.degraded()).toEqual([expect.stringContaining('"nft" is not installed')]);
    expect(await problems(dataPath)).toEqual([]);
  });
});

describe("a pod", () => {
  test("gets a pair whose host's end is a port of the bridge that nothing else comes in by", async () => {
    await using dataPath = await started();
    const { interfaces } = await dataPath.attach(requestFor("a", 10));
    const host = hostOf("a");
    expect(interfaces.map(({ name }) => name)).toEqual(["br0", host.name, "eth0"]);
    expect(interfaces[0]?.mac).toBe(formatMac(bridge().mac));
    expect(host).toMatchObject({ up: true, master: bridge().index, group: 0 });
    // Mode, guard, learning, flooding, multicast router and locked of IFLA_BRPORT_*.
    expect([4, 5, 8, 9, 25, 39].map((option) => host.port.get(option))).toEqual([0, 1, 0, 0, 0, 1]);
    const port = { hostIfname: host.name, mac: interfaces[2]?.mac, port: host.index };
    expect(await dataPath.list()).toEqual([{ owner: ownerOf("a"), ownLease: true, ...port }]);
    expect(await addressesOf(dataPath, "a")).toEqual(["10.77.0.10/24", "fd77::10/64"]);
    expect(elements("ports")).toBe(1);
    expect(await problems(dataPath)).toEqual([]);
  });

  test("may reach itself by its port where the network is so", async () => {
    await using dataPath = await started({ hairpin: true });
    await dataPath.attach(requestFor("a", 10));
    expect(hostOf("a").port.get(4)).toBe(1);
  });

  test("that goes leaves nothing, and takes nothing of another's", async () => {
    await using dataPath = await started();
    await dataPath.attach(requestFor("a", 10));
    await dataPath.attach(requestFor("b", 11));
    await dataPath.detach(ownerOf("a"));
    expect(elements("ports")).toBe(1);
    expect((await dataPath.list()).map(({ owner }) => owner.sandboxId)).toEqual(["b"]);
    // One whose interface has gone by itself.
    node().own.remove(hostOf("b").index);
    await dataPath.detach(ownerOf("b"));
    expect(elements("ports")).toBe(0);
    expect(node().filter.elements("inet pipette-br0", "pods4")).toEqual([]);
    await dataPath.detach(ownerOf("b"));
    expect(lines).toEqual([]);
  });

  test("that the kernel does not let go is an error of its DEL", async () => {
    await using dataPath = await started();
    await dataPath.attach(requestFor("a", 10));
    node().before = (action) => {
      if (action === `change the interface "${hostOf("a").name}"`) throw new Refusal(Errno.EPERM);
    };
    expect(await failing(dataPath.detach(ownerOf("a")))).toMatch(/^102 Cannot detach "eth0" of sandbox "a": .*EPERM/);
    node().before = () => undefined;
  });

  test("of a network that the agent has not is refused with those that it has", async () => {
    await using dataPath = await started();
    const strange = requestFor("a", 10, { owner: ownerOf("a", "others") });
    expect(await failing(dataPath.attach(strange))).toContain(
      '7 Cannot attach "eth0" of sandbox "a": the agent has no network "others", wanted one of "pods"',
    );
    expect(await failing(dataPath.addresses(ownerOf("a", "others")))).toContain('no network "others"');
    await dataPath.detach(ownerOf("a", "others"));
    await using none = open({}, { networks: [] });
    expect(await failing(none.attach(strange))).toContain("wanted one of none");
  });

  test("gets a bridge again that somebody has deleted, and the others their place on it", async () => {
    await using dataPath = await started();
    await dataPath.attach(requestFor("a", 10));
    node().own.remove(bridge().index);
    await dataPath.attach(requestFor("b", 11));
    expect(hostOf("a")).toMatchObject({ up: true, master: bridge().index });
    expect(hostOf("a").port.get(8)).toBe(0);
    expect(await problems(dataPath)).toEqual([]);
  });

  test("leaves nothing where the kernel refuses a part of it", async () => {
    await using dataPath = await started();
    node().filter.before = (action) => {
      if (action.startsWith("add elements")) throw new Refusal(Errno.ENOSPC);
    };
    expect(await failing(dataPath.attach(requestFor("a", 10)))).toMatch(
      /^102 Cannot attach "eth0" of sandbox "a": .*ENOSPC/,
    );
    node().filter.before = () => undefined;
    expect(await dataPath.list()).toEqual([]);
    expect(podOf("a").named("eth0")).toBeUndefined();
  });
});

describe("CHECK", () => {
  const check = async (change: (dataPath: DataPath) => unknown): Promise<string> => {
    await using dataPath = await started();
    const request = requestFor("a", 10);
    const result = await dataPath.attach(request);
    await dataPath.check(ownerOf("a"), request.container.netns, result);
    await change(dataPath);
    return await failing(dataPath.check(ownerOf("a"), request.container.netns, result));
  };

  test.each([
    ["the host's end is down", (): unknown => (hostOf("a").up = false), "it is down, wanted up"],
    [
      "it is off the bridge",
      () => node().own.leave(hostOf("a")),
      'it is no bridge port, wanted a port of the bridge "br0"',
    ],
    [
      "it is another's port",
      () => {
        hostOf("a").master = node().own.add({ name: "br9", kind: "bridge" }).index;
      },
      "it is a port of interface",
    ],
    ["the bridge is gone", () => node().own.remove(bridge().index), 'the bridge "br0": it is missing'],
    [
      "its MAC is declared no more",
      (): unknown => (node().own.neighbours = []),
      `the pod's hardware address at the port "`,
    ],
    [
      "its packet rules are gone",
      () => node().filter.tables.delete("bridge pipette-br0"),
      "it is not whole, wanted as ADD made them",
    ],
    ["the pod's end is down", (): unknown => (podOf("a").named("eth0")!.up = false), "it is down"],
  ] as const)("names it: %s", async (_name, change, says) => {
    expect(await check(change)).toContain(says);
  });
});
