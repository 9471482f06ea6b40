import { readFileSync } from "node:fs";
import { executables } from "../../../conformance/plugin.ts";
import { external, nodeMac, nodeOn, routerOn } from "../../../overlay/lab/addresses.ts";
import { scratchUntilEnd } from "../../../overlay/lab/scratch-until-end.ts";
import { Underlay, withLength } from "../../../overlay/lab/underlay.ts";
import { AgentHome, type AgentProcess } from "../../../support/agent-process.ts";
import { callPlugin } from "../../../support/cni-call.ts";
import { NetworkNamespace } from "../../../support/network-namespace.ts";
import type { Belief } from "../beliefs.ts";
import type { Pod, WorldNode } from "../world.ts";
import { factsOf, hexOf, hexOfMac, othersOn, prefixOf, routeLoopback, silence } from "./facts.ts";
import { servicesTo, translate } from "./services.ts";
import type { Ear, Site } from "./site.ts";

const bridge = "pipette0";
const nic = "nic0";
const subnets = ["10.20.1.0/24", "fd20:0:0:1::/64"] as const;
const pods = ["mallory", "near", "other"] as const;

export interface BridgeSite extends Site {
  readonly node: NetworkNamespace;
  readonly agent: AgentProcess;
}

/** One node with a kernel bridge, on the link of a router. @param families of its pods, and of the node itself */
export async function startBridgeSite(families: "ipv4" | "both"): Promise<BridgeSite> {
  await using stack = new AsyncDisposableStack();
  const parent = stack.use(scratchUntilEnd("pt-red-")).path;
  const underlay = stack.use(Underlay.create());
  await underlay.start();
  const node = stack.use(NetworkNamespace.create());
  await connect(node, underlay, families);
  const blocks = families === "both" ? subnets : subnets.slice(0, 1);
  const home = stack.use(
    new AgentHome(
      { networks: [{ name: "pods", subnets: blocks, bridge }] },
      executables,
      ["setpriv", "--pdeathsig", "KILL", "nsenter", `--net=${node.path}`],
      parent,
    ),
  );
  const agent = await home.start();
  const namespaces = pods.map(() => stack.use(NetworkNamespace.create()));
  for (const [i, namespace] of namespaces.entries()) await addPod(home, namespace, pods[i] ?? "", i + 2);
  const site = await siteOf(underlay, node, namespaces, families);
  const kept = stack.move();
  return { ...site, node, agent, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function connect(node: NetworkNamespace, underlay: Underlay, families: "ipv4" | "both"): Promise<void> {
  node.sysctl({ "ipv6/conf/default/accept_dad": 0 });
  await node.ip("link set lo up");
  await underlay.connect("a", 1, node, nic, nodeMac(1));
  const count = families === "both" ? 2 : 1;
  await node.ip(
    `link set ${nic} up`,
    ...withLength(nodeOn("a", 1))
      .slice(0, count)
      .map((address) => `addr add ${address} dev ${nic}`),
    ...routerOn("a")
      .slice(0, count)
      .map((router) => `route add default via ${router}`),
  );
}

/** Under a MAC and an address that are the same at every start. */
async function addPod(home: AgentHome, namespace: NetworkNamespace, name: string, host: number): Promise<void> {
  await namespace.ip("link set lo up");
  const list = JSON.parse(readFileSync(home.conflist, "utf8"));
  const runtimeConfig = { mac: `02:0a:00:00:01:0${host}` };
  await callPlugin({
    executable: `${executables}/pipette`,
    prefix: ["nsenter", `--net=${namespace.path}`],
    env: {
      CNI_COMMAND: "ADD",
      CNI_PATH: executables,
      CNI_CONTAINERID: `red-team-${name}`,
      CNI_NETNS: namespace.path,
      CNI_IFNAME: "eth0",
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name};K8S_POD_UID=${name}`,
    },
    conf: { ...list.plugins[0], name: list.name, cniVersion: "1.1.0", runtimeConfig },
  });
}

async function siteOf(
  underlay: Underlay,
  node: NetworkNamespace,
  namespaces: readonly NetworkNamespace[],
  families: "ipv4" | "both",
): Promise<Omit<Site, typeof Symbol.asyncDispose>> {
  const { mac, addresses, linkLocal } = await factsOf(node, bridge);
  const own = await factsOf(node, nic);
  const blocks = (families === "both" ? subnets : subnets.slice(0, 1)).map(prefixOf);
  const known: Pod[] = [];
  for (const [i, namespace] of namespaces.entries())
    known.push({ name: pods[i] ?? "", node: "n1", project: "default", ...(await factsOf(namespace, "eth0")) });
  const n1: WorldNode = {
    name: "n1",
    addresses: own.addresses,
    mac: own.mac,
    gateway: { ifname: bridge, mac, addresses, linkLocal },
    subnets: blocks,
    onSameLink: true,
  };
  const { mtu } = await factsOf(namespaces[0] as NetworkNamespace, "eth0");
  const kernels = [
    { name: "n1", namespace: node },
    ...namespaces.map((namespace, i) => ({ name: `n1/${pods[i]}`, namespace })),
    { name: "underlay", namespace: underlay.namespace },
  ];
  for (const { namespace } of kernels) await silence(namespace);
  const services = servicesTo(known, "other", "beside");
  await translate(node, services);
  routeLoopback(node, bridge);
  const ports = await portsOf(node, namespaces);
  const ears: readonly Ear[] = [
    ...namespaces.slice(1).map((namespace, i) => ({
      place: { role: "pod" as const, node: "n1", pod: pods[i + 1] ?? "" },
      namespace,
      ifname: "eth0",
    })),
    { place: { role: "gateway", node: "n1" }, namespace: node, ifname: bridge },
    { place: { role: "local", node: "n1" }, namespace: node, ifname: nic },
    { place: { role: "wire", node: "n1" }, namespace: underlay.namespace, ifname: "node1" },
  ];
  return {
    world: {
      ...{ dataPath: "bridge", mode: "bridge", tunnel: "none", projectsApart: false },
      nodes: [n1],
      pods: known as [Pod, ...Pod[]],
      clusterNetworks: [],
      services,
      external: external.map(hexOf).slice(0, blocks.length),
      others: await othersOn(underlay.namespace),
    },
    attacker: { namespace: namespaces[0] as NetworkNamespace, ifname: "eth0" },
    mtu,
    ears,
    kernels,
    learned: async () => [
      ...(await learnedOn("n1", node, ports)),
      ...(await learnedOn("underlay", underlay.namespace)),
    ],
  };
}

/** The port of each pod's MAC. */
async function portsOf(
  node: NetworkNamespace,
  namespaces: readonly NetworkNamespace[],
): Promise<ReadonlyMap<string, string>> {
  const links: { ifindex: number; ifname: string }[] = JSON.parse(await node.run("ip -j link"));
  const ports = new Map<string, string>();
  for (const namespace of namespaces) {
    const [end]: { address: string; link_index: number }[] = JSON.parse(
      await namespace.run("ip -j link show dev eth0"),
    );
    const port = links.find(({ ifindex }) => ifindex === end?.link_index);
    if (end !== undefined && port !== undefined) ports.set(end.address, port.ifname);
  }
  return ports;
}

/** The MACs that bridges of a kernel have learned, but those of pods at their own ports. */
async function learnedOn(
  who: string,
  namespace: NetworkNamespace,
  ports: ReadonlyMap<string, string> = new Map(),
): Promise<readonly Belief[]> {
  const entries: { mac: string; ifname: string; master?: string; state?: string }[] = JSON.parse(
    await namespace.run("bridge -j fdb show"),
  );
  return entries
    .filter(({ mac, ifname, state }) => state !== "permanent" && ports.get(mac) !== ifname)
    .map(({ mac, ifname, master }) => ({
      ...{ who, kind: "learned" as const, text: `${mac} at ${ifname}`, mac: hexOfMac(mac) },
      ...(master === bridge ? { ifname } : {}),
    }));
}
