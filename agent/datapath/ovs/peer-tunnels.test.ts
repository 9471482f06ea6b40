import { afterEach, beforeEach, expect, test } from "vitest";
import { LiveValue } from "../../../shared/async/live-value.ts";
import { createLogger } from "../../../shared/log.ts";
import { type Cidr, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { isAddedFlow, SwitchInMemory } from "../../../test/fakes/openflow/switch-in-memory.ts";
import { DatabaseInMemory } from "../../../test/fakes/ovsdb/database-in-memory.ts";
import { eventually } from "../../../test/support/eventually.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { CertificateFiles, CertificateSource, OvsNodeOptions } from "./options.ts";
import type { HostNetwork } from "./overlay-node.ts";
import { OvsNode } from "./ovs-node.ts";
import { tables } from "./pipeline/tables.ts";
import { OvsPolicies } from "./policies/ovs-policies.ts";

const cidr = (text: string): Cidr => parseCidr(text)!;
const host: HostNetwork = {
  macOf: async () => "02:00:00:00:00:0a",
  hasInterface: async () => true,
  useGateway: async () => undefined,
  moveAddresses: async () => undefined,
  keepAddresses: async () => undefined,
  leaveToSwitch: async () => undefined,
  ownAddresses: async () => [],
  setRoutes: async () => [],
};
const peers = new LiveValue<ReadonlyMap<string, ClusterNode>>(new Map());
let database: DatabaseInMemory;
let flows: SwitchInMemory;

beforeEach(async () => {
  peers.set(new Map());
  database = new DatabaseInMemory();
  flows = new SwitchInMemory();
  await Promise.all([database.listen(), flows.listen()]);
});
afterEach(async () => {
  await database[Symbol.asyncDispose]();
  await flows[Symbol.asyncDispose]();
});

async function started(changes: Partial<OvsNodeOptions> = {}): Promise<OvsNode> {
  const node = new OvsNode({
    database: database.address,
    management: flows.management,
    bridge: "br-int",
    kind: "system",
    mode: "encap",
    tunnel: { name: "tun0", type: "geneve", checksum: false },
    encryption: "ipsec",
    ipsec: { esp: "kernel", forceUdp: false, charon: "" },
    credentials: { kind: "psk", secret: "of-all" },
    gateway: "gw0",
    nodeName: "here",
    podSubnets: [cidr("10.1.0.0/24")],
    peers,
    services: undefined,
    serviceCidrs: [],
    tenants: undefined,
    logger: createLogger("error", () => undefined),
    nodeAddresses: [cidr("192.168.1.2/24")],
    mtu: 1400,
    host,
    policies: new OvsPolicies(flows.management),
    ...changes,
  });
  await node.start(() => true);
  return node;
}

const peer = (name: string, changes: Partial<ClusterNode> = {}): readonly [string, ClusterNode] => {
  const number = name.slice(1);
  const own = { addresses: [parseIp(`192.168.1.1${number}`)!], subnets: [cidr(`10.1.${number}.0/24`)] };
  return [name, { name, uid: name, encryption: { type: "ipsec" }, ...own, ...changes }];
};
const tell = (...nodes: readonly (readonly [string, ClusterNode])[]): void => peers.set(new Map(nodes));
const tunnels = (): string[] => database.names("Port").filter((name) => name.startsWith("p-"));
/** Flows that say where a packet comes from. */
const believed = (): number =>
  flows.done
    .flat()
    .filter((change) => change.t === "flow" && change.table === tables.Classifier)
    .reduce((sum, change) => sum + (isAddedFlow(change) ? 1 : -1), 0);
/** What is told of the node's certificate. */
const told = (): unknown => {
  const [{ rows }] = database.transact([
    { op: "select", table: "Open_vSwitch", where: [], columns: ["other_config"] },
  ]) as [{ rows: { other_config: unknown }[] }];
  return rows[0]?.other_config;
};

test("each node that encrypts likewise has a tunnel, others have none, and are named", async () => {
  const { encryption: _, ...plain } = peer("n3")[1];
  const wireguard = { encryption: { type: "wireguard", key: "x" } } as const;
  tell(peer("n2"), ["n3", plain], peer("n4", wireguard), peer("n5", { addresses: peer("n2")[1].addresses }));
  await using node = await started();
  const [port, ...others] = [...node.peerTunnels];
  expect([port?.[1].node, others]).toEqual(["n2", []]);
  expect(tunnels()).toEqual([port?.[0]]);
  expect(database.named("Interface", port?.[0] ?? "")).toMatchObject({
    type: "geneve",
    options: { remote_ip: "192.168.1.12", psk: "of-all", key: "flow" },
  });
  expect(node.unreached).toEqual([
    expect.stringContaining('node "n3": it does not encrypt'),
    expect.stringContaining('node "n4": it encrypts by "wireguard"'),
    expect.stringContaining('node "n5": its address is that of node "n2" too'),
  ]);
});

test("packets are believed out of each of these tunnels, as long as it is there", async () => {
  await using _node = await started();
  const alone = believed();
  tell(peer("n2"), peer("n3"));
  await eventually(() => tunnels().length === 2 && believed() === alone + 2, "a flow for each of both");
  tell(peer("n3"));
  await eventually(() => tunnels().length === 1 && believed() === alone + 1, "one");
});

test("a node that goes, moves or stops encrypting loses its tunnel, and what is right is not touched", async () => {
  tell(peer("n2"), peer("n3"));
  await using _node = await started();
  const before = tunnels();
  const uuid = database.named("Interface", before[1] ?? "")?.["_uuid"];
  tell(peer("n3"), peer("n4"));
  await eventually(() => tunnels().length === 2 && !tunnels().includes(before[0] ?? ""), "another tunnel");
  expect(database.named("Interface", before[1] ?? "")?.["_uuid"]).toBe(uuid);
  const moved = [parseIp("192.168.1.99")!];
  tell(peer("n3", { addresses: moved }));
  const options = (): unknown => database.named("Interface", before[1] ?? "")?.["options"];
  await eventually(() => JSON.stringify(options() ?? "").includes("192.168.1.99"), "its other end");
  expect(tunnels()).toEqual([before[1]]);
  tell();
  await eventually(() => tunnels().length === 0, "none");
});

test("while nobody says which nodes there are, those of before stay; an agent without IPsec takes them away", async () => {
  tell(peer("n2"));
  {
    await using _first = await started();
    expect(tunnels()).toHaveLength(1);
  }
  const before = tunnels();
  const silent = new LiveValue<ReadonlyMap<string, ClusterNode>>();
  {
    await using _second = await started({ peers: silent });
    expect(tunnels()).toEqual(before);
  }
  await using _third = await started({ encryption: "none", credentials: undefined });
  expect(tunnels()).toEqual([]);
});

test("tunnels wait for a certificate, and what tells of it goes with IPsec", async () => {
  const files: CertificateFiles = { certificate: "/d/c.pem", privateKey: "/d/k.pem", caCertificate: "/d/ca.pem" };
  let current: CertificateFiles | undefined;
  const source: CertificateSource = { current: () => current, onChange: () => undefined, problem: () => undefined };
  tell(peer("n2"));
  {
    await using node = await started({ credentials: { kind: "certificate", source } });
    expect(tunnels()).toEqual([]);
    expect(node.unreached).toEqual(["nothing goes to other nodes' pods: this node has no certificate yet"]);
    current = files;
    source.onChange(files);
    await eventually(() => tunnels().length === 1, "a tunnel");
    expect(database.named("Interface", tunnels()[0] ?? "")?.["options"]).toMatchObject({ remote_name: "n2" });
    for (const path of Object.values(files)) expect(JSON.stringify(told())).toContain(path);
  }
  await using _ = await started({ encryption: "none", credentials: undefined });
  expect(JSON.stringify(told())).not.toContain(".pem");
});
