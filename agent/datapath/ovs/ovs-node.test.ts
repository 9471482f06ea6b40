import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LiveValue } from "../../../shared/async/live-value.ts";
import { ownerKey } from "../../../shared/cni/owner-key.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { createLogger } from "../../../shared/log.ts";
import { type Cidr, formatCidr, formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { isAddedFlow, SwitchInMemory } from "../../../test/fakes/openflow/switch-in-memory.ts";
import { DatabaseInMemory } from "../../../test/fakes/ovsdb/database-in-memory.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { TunnelOptions } from "../../config/ovs-config.ts";
import type { RefusedRoute } from "../routes.ts";
import type { OvsNodeOptions } from "./options.ts";
import type { HostNetwork, PodPort } from "./overlay-node.ts";
import { OvsNode } from "./ovs-node.ts";
import { tables } from "./pipeline/tables.ts";
import { OvsPolicies } from "./policies/ovs-policies.ts";

let database: DatabaseInMemory;
let flows: SwitchInMemory;
let lines: string[];
/** What the node's own network was asked for, in order. */
let asked: string[];
let refusedRoutes: readonly RefusedRoute[];
let hasGateway: boolean;
let refuse: (what: string) => void;
const peers = new LiveValue<ReadonlyMap<string, ClusterNode>>(new Map());
const cidr = (text: string): Cidr => parseCidr(text)!;

const host: HostNetwork = {
  macOf: async (uplink) => note(`macOf ${uplink}`, "02:00:00:00:00:0a"),
  hasInterface: async (name) => note(`hasInterface ${name}`, hasGateway),
  useGateway: async ({ name, addresses, mtu }) => note(`useGateway ${name} ${addresses.map(formatCidr)} ${mtu}`),
  moveAddresses: async (from, to) => note(`moveAddresses ${from} ${to}`),
  keepAddresses: async (uplink, bridge) => note(`keepAddresses ${uplink} ${bridge}`),
  leaveToSwitch: async (names) => note(`leaveToSwitch ${names}`),
  ownAddresses: async () => [],
  setRoutes: async (routes) =>
    note(`setRoutes ${routes.map(({ dst, via, by }) => `${formatCidr(dst)} ${formatIp(via)} ${by}`)}`, refusedRoutes),
};
function note<T = void>(what: string, answer?: T): T {
  asked.push(what);
  refuse(what);
  return answer as T;
}

beforeEach(async () => {
  [lines, asked, refusedRoutes, hasGateway, refuse] = [[], [], [], true, () => undefined];
  peers.set(new Map());
  database = new DatabaseInMemory();
  flows = new SwitchInMemory();
  await Promise.all([database.listen(), flows.listen()]);
});
afterEach(async () => {
  await database[Symbol.asyncDispose]();
  await flows[Symbol.asyncDispose]();
});

const open = (changes: Partial<OvsNodeOptions> = {}): OvsNode =>
  new OvsNode({
    database: database.address,
    management: flows.management,
    bridge: "br-int",
    kind: "system",
    mode: "encap",
    tunnel: { name: "tun0", type: "geneve", checksum: false } as TunnelOptions,
    encryption: "none",
    ipsec: { esp: "kernel", forceUdp: false, charon: "" },
    gateway: "gw0",
    nodeName: "here",
    podSubnets: [cidr("10.1.0.0/24")],
    peers,
    services: undefined,
    serviceCidrs: [],
    tenants: undefined,
    logger: createLogger("info", (line) => lines.push(line)),
    nodeAddresses: [cidr("192.168.1.2/24")],
    mtu: 1400,
    host,
    policies: new OvsPolicies(flows.management),
    ...changes,
  });
async function started(changes: Partial<OvsNodeOptions> = {}): Promise<OvsNode> {
  const node = open(changes);
  await node.start(() => true);
  return node;
}

const podPort = (name: string, changes: Partial<PodPort> = {}): PodPort => ({
  owner: { network: "pods", sandboxId: name, ifname: "eth0" },
  port: `${name}-p`,
  mac: `02:00:00:00:01:0${name}`,
  ips: [parseIp(`10.1.0.${Number.parseInt(name, 16)}`)!],
  pod: { namespace: "shop", name, uid: "u" },
  netns: `/run/netns/${name}`,
  ownLease: true,
  device: "17",
  ...changes,
});
const peer = (name: string, address: string, ...subnets: readonly string[]) =>
  [name, { name, uid: name, addresses: [parseIp(address)!], subnets: subnets.map(cidr) }] as const;
/** Of the bridge, in the order in which they came; its own is the first. */
const portsOf = () => (database.named("Bridge", "br-int")?.["ports"] ?? []) as readonly unknown[];
const routes = () => asked.filter((what) => what.startsWith("setRoutes")).at(-1);

describe("the node's part of the overlay", () => {
  test("is made with bridge, gateway and tunnel, flows before the host's side", async () => {
    await using node = await started();
    expect(database.names("Port")).toEqual(["br-int", "gw0", "tun0"]);
    expect(asked).toEqual(["useGateway gw0 10.1.0.1/24 1400", "setRoutes "]);
    expect(flows.flows.size).toBeGreaterThan(10);
    expect([node.problems(), node.hasPod(podPort("a").owner)]).toEqual([[], false]);
    expect(lines.join()).toContain("the switch has everything");
  });

  test.each([
    ["encap", {}, ["br-int", "gw0", "tun0"]],
    ["hybrid", { mode: "hybrid" }, ["br-int", "gw0", "tun0"]],
    ["noEncap", { mode: "noEncap" }, ["br-int", "gw0"]],
    ["networkPolicyOnly", { mode: "networkPolicyOnly" }, ["br-int", "gw0"]],
    ["an uplink", { mode: "noEncap", uplink: "nic0" }, ["br-int", "gw0", "nic0"]],
  ] as const)("has the ports of its mode: %s", async (_name, changes, ports) => {
    await using _node = await started(changes);
    expect(database.names("Port")).toEqual(ports);
  });

  test("with an uplink has its MAC and keeps its addresses, and gives them back to one that it has no more", async () => {
    {
      await using _node = await started({ mode: "noEncap", uplink: "nic0" });
      expect(database.named("Bridge", "br-int")?.["other_config"]).toMatchObject({ hwaddr: "02:00:00:00:00:0a" });
      expect(asked.slice(0, 2)).toEqual(["macOf nic0", "keepAddresses nic0 br-int"]);
      expect(asked).not.toContain("moveAddresses br-int nic0");
    }
    asked = [];
    await using _node = await started({ mode: "noEncap" });
    expect(asked[0]).toBe("moveAddresses br-int nic0");
    expect(database.names("Port")).toEqual(["br-int", "gw0"]);
  });

  test("where another plugin routes gives the gateway no addresses", async () => {
    await using _node = await started({ mode: "networkPolicyOnly" });
    expect(asked[0]).toBe("useGateway gw0  1400");
  });

  test("tells which outer source a tunnel has where the node has one address alone", async () => {
    {
      await using _node = await started();
      expect(database.named("Interface", "tun0")?.["options"]).toMatchObject({ local_ip: "192.168.1.2" });
    }
    await using _other = await started({ nodeAddresses: [cidr("192.168.1.2/24"), cidr("fd00::2/64")] });
    expect(database.named("Interface", "tun0")?.["options"]).not.toHaveProperty("local_ip");
  });

  test("says why it cannot be reached", async () => {
    await using node = await started();
    await flows.close();
    await expect.poll(() => node.problems()).toEqual([expect.stringMatching(/^the switch at ".*" cannot be reached/)]);
    expect(lines.join()).toContain("the switch is away");
    await database.close();
    await expect.poll(() => node.problems()).toEqual([expect.stringMatching(/^the database of Open vSwitch at/)]);
  });

  test("is right again after somebody has changed the bridge", async () => {
    await using _node = await started();
    database.change("Bridge", "br-int", { fail_mode: "standalone" });
    await expect.poll(() => database.named("Bridge", "br-int")?.["fail_mode"]).toBe("secure");
    database.transact([
      {
        op: "mutate",
        table: "Bridge",
        where: [["name", "==", "br-int"]],
        mutations: [["ports", "delete", ["set", portsOf().slice(1)]]],
      },
    ]);
    await expect.poll(() => database.names("Port")).toEqual(["br-int", "gw0", "tun0"]);
    // Another device has none of the addresses.
    await expect.poll(() => asked.filter((what) => what.startsWith("useGateway")).length).toBe(2);
  });

  test.each(["gw0", "tun0", "nic0"])("has its port %s as it was after somebody has changed it", async (name) => {
    await using _node = await started({ mode: "hybrid", uplink: "nic0" });
    // More than once, as the start may have left a reconciliation that is still to come.
    for (let i = 0; i < 3; i++) {
      // Beside a change of no importance.
      database.transact([
        {
          op: "update",
          table: "Bridge",
          where: [["name", "==", "br-int"]],
          row: { external_ids: ["map", [["i", `${i}`]]] },
        },
        { op: "update", table: "Interface", where: [["name", "==", name]], row: { ofport_request: i + 1 } },
      ]);
      await expect.poll(() => database.named("Interface", name)?.["ofport_request"]).toBeGreaterThan(3);
    }
  });

  test("has its addresses on the bridge's own device, also where that is another one", async () => {
    await using _node = await started({ mode: "noEncap", uplink: "nic0" });
    for (let i = 0; i < 3; i++) {
      asked = [];
      database.change("Interface", "br-int", { ifindex: 100 + i });
      await expect.poll(() => asked).toContain("keepAddresses nic0 br-int");
    }
  });

  test("is looked at as a whole with the next start, a gateway that is gone made anew", async () => {
    await using node = await started();
    asked = [];
    await node.start(() => true);
    expect(asked).toEqual(["hasInterface gw0", "useGateway gw0 10.1.0.1/24 1400", "setRoutes "]);
    const before = database.named("Interface", "gw0")?.["ifindex"];
    hasGateway = false;
    await node.start(() => true);
    expect(database.named("Interface", "gw0")?.["ifindex"]).not.toBe(before);
  });

  test("has the host's side set up again when somebody has changed it, and says what keeps it from that", async () => {
    await using node = await started();
    asked = [];
    node.checkHost();
    await expect.poll(() => asked).toEqual(["useGateway gw0 10.1.0.1/24 1400", "setRoutes "]);
    refuse = (what) => {
      if (what.startsWith("useGateway")) throw new CniError(CniCode.interfaceFailure, "not now");
    };
    node.checkHost();
    await expect.poll(() => lines.join()).toContain("not now");
  });
});

test("a pod that policies isolate is isolated by the bundle that lets its packets in", async () => {
  const policies = new OvsPolicies(flows.management);
  await using node = await started({ policies });
  const { owner } = podPort("a");
  const isolated = new Map([[ownerKey(owner), { owner, directions: ["ingress", "egress"] as const, by: [] }]]);
  expect(await policies.enforce({ rules: new Map(), isolated })).toEqual([]);
  await node.connectPod(podPort("a"));
  await node.connectPod(podPort("b"));
  const tablesOf = (changes: (typeof flows.done)[number]) => changes.map((one) => (one.t === "flow" ? one.table : -1));
  const letting = flows.done.map(tablesOf).filter((all) => all.includes(tables.SpoofGuard) && all.length < 40);
  expect(letting.filter((all) => all.includes(tables.IngressDefaultRule))).toHaveLength(1);
  await node.disconnectPod(owner);
  await expect.poll(() => flows.flows.has(`${tables.IngressDefaultRule}/200`)).toBe(false);
});

describe("other nodes", () => {
  test("are followed: flows and routes for each, and none for those that have gone", async () => {
    await using _node = await started();
    const { size } = flows.flows;
    peers.set(new Map([peer("next", "192.168.1.3", "10.1.3.0/24")]));
    await expect.poll(() => routes()).toBe("setRoutes 10.1.3.0/24 10.1.3.1 gateway");
    expect(flows.flows.size).toBeGreaterThanOrEqual(size);
    peers.set(new Map());
    await expect.poll(() => routes()).toBe("setRoutes ");
  });

  test("whose routes the system refuses are told", async () => {
    await using node = await started();
    const route = { dst: cidr("10.1.3.0/24"), via: parseIp("10.1.3.1")!, by: "gateway" } as const;
    refusedRoutes = [{ route, why: "the interface is down" }];
    peers.set(new Map([peer("next", "192.168.1.3", "10.1.3.0/24")]));
    await expect.poll(() => node.degraded()).toContainEqual(expect.stringContaining("10.1.3.0/24"));
  });
});

describe("pods", () => {
  test("get their ports, are listed, and go", async () => {
    await using node = await started();
    await node.connectPod(podPort("a"));
    expect(await node.pods()).toMatchObject([{ port: "a-p", vnid: 0, ofport: expect.any(Number) }]);
    expect(node.hasPod(podPort("a").owner)).toBe(true);
    expect([...node.wantedPods].map(({ port }) => port)).toEqual(["a-p"]);
    await node.disconnectPod(podPort("a").owner);
    expect(await node.pods()).toEqual([]);
    await node.checkFlows(podPort("a").owner);
  });

  test("of an earlier agent are kept where something stands behind them", async () => {
    {
      await using node = await started();
      for (const name of ["a", "b"]) await node.connectPod(podPort(name));
    }
    await using node = open();
    expect((await node.pods()).map(({ port }) => port).toSorted()).toEqual(["a-p", "b-p"]);
    await node.start(({ owner }) => owner.sandboxId === "a");
    await expect.poll(async () => (await node.pods()).map(({ port }) => port)).toEqual(["a-p"]);
  });

  test("that could not leave go once the database answers", async () => {
    await using node = await started();
    await node.connectPod(podPort("a"));
    database.refuse = (operations) =>
      operations.length === 1 && operations[0] === "mutate Bridge" ? "timed out" : undefined;
    await node.disconnectPod(podPort("a").owner);
    expect(database.names("Port")).toContain("a-p");
    database.refuse = () => undefined;
    await expect.poll(() => database.names("Port"), { timeout: 20_000 }).not.toContain("a-p");
  });

  test("whose port somebody takes away get it again, with a word in the log", async () => {
    await using node = await started();
    await node.connectPod(podPort("a"));
    const kept = portsOf().slice(0, 3);
    database.change("Bridge", "br-int", { ports: ["set", kept] });
    await expect.poll(() => database.names("Port")).toContain("a-p");
    expect(lines.join()).toContain("a pod's port that is gone is made again");
  });

  test("whose port somebody takes away before their call has ended get it again too", async () => {
    await using node = await started();
    const kept = portsOf().slice(0, 3);
    const answers = Promise.withResolvers<void>();
    flows.held = answers.promise;
    const connecting = node.connectPod(podPort("a"));
    await expect.poll(() => node.pods()).toMatchObject([{ ofport: 1024 }]);
    database.change("Bridge", "br-int", { ports: ["set", kept] });
    await expect.poll(() => node.pods()).toEqual([]);
    flows.held = undefined;
    answers.resolve();
    await connecting;
    await expect.poll(() => database.names("Port")).toContain("a-p");
  });

  test("where another plugin routes are routed to by the gateway, and their refused routes fail the call", async () => {
    await using node = await started({ mode: "networkPolicyOnly" });
    await node.connectPod(podPort("a"));
    expect(routes()).toContain("10.1.0.10");
    await node.disconnectPod(podPort("a").owner);
    await expect.poll(() => routes()).toBe("setRoutes ");
    const route = { dst: cidr("10.1.0.10/32"), via: parseIp("10.1.0.10")!, by: "gateway" } as const;
    refusedRoutes = [{ route, why: "no" }];
    await expect(node.connectPod(podPort("a"))).rejects.toThrow("10.1.0.10/32");
  });

  test("of projects that are kept apart have a VNID, and another one when the registry says so", async () => {
    const vnids = new LiveValue<ReadonlyMap<string, number>>(new Map([["shop", 7]]));
    const follow = () => Object.assign(vnids, { [Symbol.asyncDispose]: async () => undefined });
    const tenants = { follow, vnidOf: async () => 5 } as never;
    await using node = await started({ tenants });
    await node.connectPod(podPort("a"));
    expect(await node.pods()).toMatchObject([{ vnid: 7 }]);
    await node.connectPod(podPort("b", { pod: { namespace: "new", name: "b", uid: "u" } }));
    expect((await node.pods()).map(({ vnid }) => vnid).toSorted()).toEqual([5, 7]);
    vnids.set(new Map([["shop", 8]]));
    await expect.poll(async () => (await node.pods()).map(({ vnid }) => vnid).toSorted()).toEqual([5, 8]);
  });

  test("whose flows the switch refuses are told", async () => {
    await using node = await started();
    flows.refuse = (change) => (isAddedFlow(change) ? [3, 2] : undefined);
    await expect(node.connectPod(podPort("a"))).rejects.toMatchObject({ code: 102 });
    const key = `pod/${ownerKey(podPort("a").owner)}`;
    expect(await node.degraded()).toContainEqual(expect.stringContaining(`the switch refuses "${key}"`));
  });
});

test("nothing is degraded before there is anything", async () => {
  await using node = open();
  expect(await node.degraded()).toEqual([]);
});

test("a switch in user space has the node leave its interfaces to it", async () => {
  await using _node = await started({ kind: "netdev" });
  expect(asked).toContain("leaveToSwitch ");
});
