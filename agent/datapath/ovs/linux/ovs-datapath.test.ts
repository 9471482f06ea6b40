import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LiveValue } from "../../../../shared/async/live-value.ts";
import type { CniResult } from "../../../../shared/cni/types.ts";
import { createLogger } from "../../../../shared/log.ts";
import { formatCidr } from "../../../../shared/net/ip.ts";
import {
  cidr,
  failing,
  freshNode,
  hostOf,
  ownerOf,
  podOf,
  problems,
  requestFor,
} from "../../../../test/fakes/netlink/bridge-node.ts";
import { present } from "../../../../test/fakes/netlink/kernel.ts";
import { SwitchInMemory } from "../../../../test/fakes/openflow/switch-in-memory.ts";
import { DatabaseInMemory } from "../../../../test/fakes/ovsdb/database-in-memory.ts";
import { scratchDir } from "../../../../test/support/scratch-dir.ts";
import type { ClusterNode } from "../../../cluster/node-registry.ts";
import type { TunnelOptions } from "../../../config/ovs-config.ts";
import type { DataPath } from "../../datapath.ts";
import type { OvsDataPathOptions } from "../options.ts";
import { cleanUpOvs } from "./clean-up.ts";
import { createOvsDataPath } from "./ovs-datapath.ts";

vi.mock(import("../../../protocols/netlink/mod.ts"), async (original) => {
  const { netlinkInMemory } = await import("../../../../test/fakes/netlink/mocks.ts");
  return netlinkInMemory(await original());
});
vi.mock(import("../../../platform/run-program.ts"), async (original) => {
  const { programsInMemory } = await import("../../../../test/fakes/netlink/mocks.ts");
  return programsInMemory(await original());
});
vi.mock(import("node:fs"), async (original) => {
  const { hostFiles } = await import("../../../../test/fakes/netlink/host-files.ts");
  return hostFiles(await original()) as never;
});

let open: AsyncDisposableStack;
let database: DatabaseInMemory;
let flows: SwitchInMemory;
let dataDir: string;
let lines: string[];
const peers = new LiveValue<ReadonlyMap<string, ClusterNode>>(new Map());

beforeEach(async () => {
  freshNode();
  lines = [];
  peers.set(new Map());
  open = new AsyncDisposableStack();
  dataDir = open.use(scratchDir()).path;
  database = open.use(new DatabaseInMemory());
  flows = open.use(new SwitchInMemory());
  // The device that ovs-vswitchd makes of the gateway port.
  present.node.own.add({ name: "gw0", up: true });
  await Promise.all([database.listen(), flows.listen()]);
});
afterEach(() => open.disposeAsync());

const optionsOf = (changes: Partial<OvsDataPathOptions> = {}): OvsDataPathOptions => ({
  database: database.address,
  management: flows.management,
  bridge: "br-int",
  kind: "system",
  mode: "encap",
  tunnel: { name: "tun0", type: "geneve", checksum: false } as TunnelOptions,
  encryption: "none",
  ipsec: { esp: "kernel", forceUdp: false, charon: "" },
  wireguard: { port: 51_820, device: "wg0" },
  gateway: "gw0",
  nodeName: "here",
  podSubnets: [cidr("10.77.0.0/24"), cidr("fd77::/64")],
  peers,
  services: undefined,
  serviceCidrs: [],
  tenants: undefined,
  logger: createLogger("warn", (line) => lines.push(line)),
  network: "pods",
  dataDir,
  nodeAddresses: [cidr("192.168.1.2/24")],
  masquerade: true,
  podOf: () => undefined,
  clusterSubnets: undefined,
  ...changes,
});
async function started(changes: Partial<OvsDataPathOptions> = {}): Promise<DataPath> {
  const dataPath = createOvsDataPath(optionsOf(changes));
  await dataPath.start();
  return dataPath;
}
const rulesOf = (chain: string) =>
  present.node.filter.tables
    .get("inet pipette-gw0")
    ?.chains.get(chain)
    ?.rules.map(({ comment }) => comment) ?? [];
/** IPv4 addresses to which the node's kernel sends. */
const presentPods = () => present.node.filter.elements("inet pipette-gw0", "pods4");

test("encryption wants to know the networks of all pods, of each family that this node's pods have", () => {
  const wireguard =
    (...networks: string[]) =>
    () =>
      createOvsDataPath(optionsOf({ encryption: "wireguard", podNetworks: networks.map(cidr) }));
  expect(wireguard()).toThrow("nobody says what the networks of all pods are");
  expect(wireguard("10.77.0.0/16")).toThrow("this node's pods have fd77::/64, which is in no network");
  expect(wireguard("10.78.0.0/16", "fd77::/48")).toThrow("this node's pods have 10.77.0.0/24");
});

describe("a pod on Open vSwitch", () => {
  test("gets a pair, a port of it, and a place among those that the node sends to", async () => {
    await using dataPath = await started();
    const { interfaces } = await dataPath.attach(requestFor("a", 10));
    const { name, index, up, group } = hostOf("a");
    expect(interfaces.map(({ name }) => name)).toEqual(["br-int", name, "eth0"]);
    expect([up, group, hostOf("a").master]).toEqual([true, 0, 0]);
    expect(database.named("Port", name)?.["external_ids"]).toMatchObject({
      "attached-mac": interfaces[2]?.mac,
      "ip-address": "10.77.0.10,fd77::10",
      "pipette-device": String(index),
      "pod-name": "web-a",
    });
    expect(presentPods()).toEqual(["0a4d000a"]);
    expect(podOf("a").named("eth0")?.mtu).toBe(1450);
    const port = database.named("Interface", name)?.["ofport"];
    const mac = interfaces[2]?.mac;
    expect(await dataPath.list()).toEqual([{ owner: ownerOf("a"), ownLease: true, hostIfname: name, mac, port }]);
    expect((await dataPath.addresses(ownerOf("a"))).map(formatCidr)).toEqual(["10.77.0.10/24", "fd77::10/64"]);
    expect([dataPath.addressesInUse(ownerOf("a")), await problems(dataPath)]).toEqual([[], []]);
    await dataPath.detach(ownerOf("a"));
    expect([database.named("Port", name), presentPods(), await dataPath.list()]).toEqual([undefined, [], []]);
  });

  test.each([
    ["what is configured", { mtu: 1300 }, 1300],
    ["what the tunnel leaves", {}, 1450],
    ["the whole of the link without a tunnel", { mode: "noEncap" }, 1500],
  ] as const)("has the MTU of %s", async (_name, changes, mtu) => {
    await using dataPath = await started(changes);
    await dataPath.attach(requestFor("a", 10));
    expect(podOf("a").named("eth0")?.mtu).toBe(mtu);
  });

  test("is connected where the switch has taken its port down while it made it", async () => {
    await using dataPath = await started();
    database.problemOf = (name) => {
      present.node.own.named(name)!.up = false;
      return undefined;
    };
    await dataPath.attach(requestFor("a", 10));
    expect([hostOf("a").up, await problems(dataPath)]).toEqual([true, []]);
  });

  test("whose port somebody takes down is missed, and gets it back with the next start", async () => {
    await using dataPath = await started();
    for (const [i, name] of ["a", "b", "c"].entries()) await dataPath.attach(requestFor(name, 10 + i));
    hostOf("a").up = false;
    expect(await problems(dataPath)).toEqual(["51 1 pod's port is down"]);
    hostOf("b").up = false;
    expect(await problems(dataPath)).toEqual(["51 2 pods' ports are down"]);
    await dataPath.start();
    expect([hostOf("a").up, hostOf("b").up, await problems(dataPath)]).toEqual([true, true, []]);
    expect(lines.join("\n")).toContain("a pod's port that was down is up again");
  });

  test("leaves nothing where the switch takes no port", async () => {
    await using dataPath = await started();
    database.problemOf = (name) => (name === "gw0" ? undefined : "no such device");
    expect(await failing(dataPath.attach(requestFor("a", 10)))).toMatch(/^102 /);
    expect([await dataPath.list(), presentPods()]).toEqual([[], []]);
    expect(database.names("Port")).toEqual(["br-int", "gw0", "tun0"]);
  });

  test("is refused where the gateway is missing, or the network is not the node's", async () => {
    await using dataPath = await started();
    expect(await failing(dataPath.attach(requestFor("a", 10, { owner: ownerOf("a", "other") })))).toMatch(
      /^7 .*no network "other", wanted "pods"/,
    );
    expect(await failing(dataPath.addresses(ownerOf("a", "other")))).toContain("read the addresses");
    present.node.own.remove(present.node.own.named("gw0")!.index);
    expect(await failing(dataPath.attach(requestFor("a", 10)))).toMatch(/^11 .*the gateway "gw0" is missing/);
  });

  test("has whole checksums where the switch reads its packets, which the node's kernel does not hear", async () => {
    await using dataPath = await started({ kind: "netdev" });
    await dataPath.attach(requestFor("a", 10));
    expect(hostOf("a").group).toBe(0x70697003);
    expect(present.node.own.sysctls.get(`/proc/sys/net/ipv4/conf/${hostOf("a").name}/arp_ignore`)).toBe("8");
    expect(await problems(dataPath)).toEqual([]);
    hostOf("a").group = 0;
    expect(await problems(dataPath)).toEqual([expect.stringContaining("the node's kernel hears")]);
  });
});

describe("CHECK", () => {
  async function checked(change: (result: CniResult) => unknown): Promise<string> {
    await using dataPath = await started();
    const request = requestFor("a", 10);
    const result = await dataPath.attach(request);
    await change(result);
    return await failing(dataPath.check(ownerOf("a"), request.container.netns, result));
  }
  test.each([
    ["the host's end is down", (): unknown => (hostOf("a").up = false), "it is down, wanted up"],
    ["the pod's end is down", (): unknown => (podOf("a").named("eth0")!.up = false), "it is down, wanted up"],
    ["its interface is gone", () => podOf("a").remove(podOf("a").named("eth0")!.index), "missing on the node"],
  ] as const)("names it: %s", async (_name, change, says) => {
    expect(await checked(change)).toContain(says);
  });
});

describe("an agent that starts again", () => {
  async function again(change: () => unknown, changes: Partial<OvsDataPathOptions> = {}): Promise<DataPath> {
    const before = await started();
    for (const [i, name] of ["a", "b"].entries()) await before.attach(requestFor(name, 10 + i));
    await before[Symbol.asyncDispose]();
    change();
    return started(changes);
  }
  const ports = () => database.names("Port").filter((name) => !["br-int", "gw0", "tun0"].includes(name));

  test("keeps what stands, and has the node know of it", async () => {
    await using dataPath = await again(() => present.node.filter.tables.clear());
    expect(ports()).toEqual([hostOf("a").name, hostOf("b").name].toSorted());
    expect(presentPods()).toEqual(["0a4d000a", "0a4d000b"]);
    expect([await problems(dataPath), lines]).toEqual([[], []]);
  });

  test("takes ports away whose interface has gone, or is another by now", async () => {
    await using dataPath = await again(() => {
      const { name, index } = hostOf("a");
      present.node.own.remove(index);
      present.node.own.add({ name });
    });
    await expect.poll(ports).toEqual([hostOf("b").name]);
    expect(presentPods()).toEqual(["0a4d000b"]);
    expect((await dataPath.list()).map(({ owner }) => owner.sandboxId)).toEqual(["b"]);
  });

  test("makes ports again that the database has lost, with the pod that was asked for", async () => {
    const pod = { namespace: "shop", name: "found", uid: "u" };
    await using _dataPath = await again(() => database.change("Bridge", "br-int", { ports: ["set", []] }), {
      podOf: ({ sandboxId }) => (sandboxId === "a" ? pod : undefined),
    });
    expect(ports()).toEqual([hostOf("a").name, hostOf("b").name].toSorted());
    expect(database.named("Port", hostOf("a").name)?.["external_ids"]).toMatchObject({
      "pod-name": "found",
      "ip-address": "10.77.0.10,fd77::10",
      "pipette-device": String(hostOf("a").index),
    });
    expect(database.named("Port", hostOf("b").name)?.["external_ids"]).not.toHaveProperty("pod-name");
    expect(lines.filter((line) => line.includes("is made again"))).toHaveLength(2);
  });

  test("makes no port for one that has no addresses, or whose pod has gone", async () => {
    await using _dataPath = await again(() => {
      database.change("Bridge", "br-int", { ports: ["set", []] });
      podOf("a").addresses = [];
    });
    expect(ports()).toEqual([hostOf("b").name]);
  });

  test("goes on with the others where one cannot be made", async () => {
    await using _dataPath = await again(() => {
      const broken = hostOf("a").name;
      database.change("Bridge", "br-int", { ports: ["set", []] });
      database.problemOf = (name) => (name === broken ? "no such device" : undefined);
    });
    expect(lines.join()).toContain("cannot make a pod's port again");
    expect(ports()).toContain(hostOf("b").name);
  });

  test("takes away what a killed one has left half made", async () => {
    await using _dataPath = await again(() => present.node.own.add({ name: "half", kind: "veth", group: 0x70697001 }));
    expect(present.node.own.named("half")).toBeUndefined();
  });
});

describe("the node", () => {
  test("says what its gateway lacks, by whether pods are there, and gets it back with the next start", async () => {
    await using dataPath = await started();
    const gateway = present.node.own.named("gw0")!;
    gateway.up = false;
    present.node.own.addresses = present.node.own.addresses.filter(({ family }) => family !== 2);
    present.node.own.sysctls.set("/proc/sys/net/ipv4/ip_forward", "0");
    present.node.filter.tables.get("inet pipette-gw0")!.chains.get("loopback")!.rules.pop();
    const lacks = [
      'the gateway "gw0" is down',
      'the gateway "gw0" lacks the address "10.77.0.1/24"',
      "IPv4 forwarding is off on the node",
      expect.stringContaining("packet rules stand in the table"),
    ];
    const coded = (code: number) =>
      lacks.map((each) => (typeof each === "string" ? `${code} ${each}` : expect.stringContaining(`${code} `)));
    expect(await problems(dataPath)).toEqual(coded(50));
    await dataPath.start();
    expect(await problems(dataPath)).toEqual([]);
    await dataPath.attach(requestFor("a", 10));
    gateway.up = false;
    expect(await problems(dataPath)).toEqual(['51 the gateway "gw0" is down']);
    present.node.own.remove(gateway.index);
    expect(await problems(dataPath)).toEqual(['51 the gateway "gw0" is missing']);
  });

  test("hides pods on their way out, but not from other nodes' pods, and follows them", async () => {
    await using _dataPath = await started();
    expect(rulesOf("postrouting")).toEqual([
      'ip saddr 10.77.0.0/24 ip daddr != { 10.77.0.0/24, 224.0.0.0/4 } oifname != "gw0" masquerade;',
      'ip6 saddr fd77::/64 ip6 daddr != { fd77::/64, ff00::/8 } oifname != "gw0" masquerade;',
    ]);
    expect(rulesOf("tunnel-input")).toEqual(['iifname "gw0" udp dport 6081 drop;']);
    const next = { name: "next", uid: "u", addresses: [cidr("192.168.1.3/32").ip], subnets: [cidr("10.88.0.0/24")] };
    peers.set(new Map([["next", next]]));
    await expect.poll(() => rulesOf("postrouting")[0]).toContain("{ 10.77.0.0/24, 10.88.0.0/24, 224.0.0.0/4 }");
  });

  test.each([
    ["hides nobody where it is told so", { masquerade: false }, [], 1],
    ["leaves that to the other plugin that routes", { mode: "networkPolicyOnly" }, [], 0],
    ["guards no tunnel where there is none", { mode: "noEncap" }, undefined, 0],
  ] as const)("%s", async (_name, changes, hiding, guards) => {
    await using _dataPath = await started(changes);
    if (hiding !== undefined) expect(rulesOf("postrouting")).toEqual(hiding);
    expect(rulesOf("tunnel-input")).toHaveLength(guards);
  });

  test("says what pods are not kept from where it has no nft, and connects them all the same", async () => {
    present.node.nftRefusal = { stdout: "", stderr: "", failure: '"nft" is not installed', isAbsent: true };
    await using dataPath = await started({ masquerade: false });
    expect(await dataPath.degraded()).toContainEqual(expect.stringContaining('"nft" is not installed'));
    await dataPath.attach(requestFor("a", 10));
    expect(await problems(dataPath)).toEqual([]);
  });
});

describe("a clean-up", () => {
  const cleanUp = async (uplink?: string) => {
    const { logger } = optionsOf();
    const changes = await cleanUpOvs({
      network: "pods",
      dataDir,
      uplink,
      database: database.address,
      bridge: "br-int",
      gateway: "gw0",
      encrypting: "wg0",
      logger,
    });
    return changes.map(({ step, did }) => `${step}: ${did}`);
  };

  test("takes all back", async () => {
    {
      await using dataPath = await started({ kind: "netdev" });
      await dataPath.attach(requestFor("a", 10));
    }
    expect(await cleanUp()).toEqual([
      "pods: undone",
      "uplink: was gone",
      "routes: was gone",
      "ovs bridge: undone",
      "packet rules: undone",
      "encryption: was gone",
      "trust: was gone",
    ]);
    expect([database.names("Port"), present.node.filter.tables.size]).toEqual([[], 0]);
    expect(podOf("a").named("eth0")).toBeUndefined();
    expect((await cleanUp()).slice(0, 4)).toEqual([
      "pods: was gone",
      "uplink: was gone",
      "routes: was gone",
      "ovs bridge: was gone",
    ]);
  });

  test("gives the node's addresses back before the bridge goes, and leaves that where it cannot", async () => {
    const { own } = present.node;
    for (const name of ["nic0", "br-int"]) own.add({ name, up: true });
    const ip = Uint8Array.of(192, 168, 1, 2);
    own.addresses.push({ index: own.named("nic0")!.index, family: 2, prefix: 24, ip });
    await (await started({ mode: "noEncap", uplink: "nic0" }))[Symbol.asyncDispose]();
    const holder = () => own.links.get(own.addresses.find((one) => one.ip.toHex() === "c0a80102")?.index ?? 0)?.name;
    expect(holder()).toBe("br-int");
    expect(await cleanUp("nic0")).toContain("uplink: undone");
    expect([holder(), database.names("Bridge")]).toEqual(["nic0", []]);
  });
});
