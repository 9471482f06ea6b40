import { clusterNetworks, external, type Link } from "../../../overlay/lab/addresses.ts";
import { Lab, type LabOptions } from "../../../overlay/lab/lab.ts";
import type { LabNode } from "../../../overlay/lab/lab-node.ts";
import type { LabPod } from "../../../overlay/lab/lab-pod.ts";
import type { NetworkNamespace } from "../../../support/network-namespace.ts";
import type { Belief } from "../beliefs.ts";
import type { Place, Pod, World, WorldNode } from "../world.ts";
import { factsOf, hexOf, hexOfMac, othersOn, prefixOf, routeLoopback, silence } from "./facts.ts";
import { servicesTo, translate, tunnelServices } from "./services.ts";
import type { Ear, Site } from "./site.ts";

const gateway = "pipette-gw0";

/** Of the first node the first is the attacker's; with projects kept apart "blue" is not to be reached. */
const podsOfFirst = [
  { name: "mallory", project: "red" },
  { name: "near", project: "red" },
  { name: "other", project: "blue" },
] as const;
const podsOfOthers = [
  { name: "far", project: "red" },
  { name: "apart", project: "blue" },
] as const;

export interface OvsSite extends Site {
  readonly lab: Lab;
}

/** Nodes with Open vSwitch on links, whose subnets and MACs are the same at every start: frames can be sent again. */
export async function startOvsSite(options: LabOptions): Promise<OvsSite> {
  const lab = await Lab.ground(options);
  try {
    await lab.startRegistry();
    // One after the other: who comes first has the first subnet.
    for (const node of lab.nodes) {
      await node.startAgent();
      // The other plugin's, there.
      if (options.ovs?.mode === "networkPolicyOnly")
        node.namespace.sysctl({ "ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1 });
    }
    const pods: LabPod[] = [];
    for (const node of lab.nodes)
      for (const [i, { name, project }] of (node.number === 1 ? podsOfFirst : podsOfOthers).entries())
        pods.push(await node.addPod(name, { project, mac: `02:0a:00:00:0${node.number}:0${i + 2}` }));
    return await siteOf(lab, options, pods);
  } catch (caught) {
    await lab[Symbol.asyncDispose]();
    throw caught;
  }
}

async function siteOf(lab: Lab, options: LabOptions, pods: readonly LabPod[]): Promise<OvsSite> {
  const [attacker] = pods;
  if (attacker === undefined) throw new Error("Cannot attack: there is no pod, wanted one");
  const kernels = [
    ...lab.nodes.map(({ name, namespace }) => ({ name, namespace })),
    ...pods.map(({ name, node, namespace }) => ({ name: `${node.name}/${name}`, namespace })),
    { name: "underlay", namespace: lab.underlay.namespace },
  ];
  const world = await worldOf(lab, options, pods);
  const { mtu } = await factsOf(attacker.namespace, "eth0");
  for (const { namespace } of kernels) await silence(namespace);
  await translate(lab.node(1).namespace, world.services);
  routeLoopback(lab.node(1).namespace, gateway);
  return {
    lab,
    world,
    attacker: { namespace: attacker.namespace, ifname: "eth0" },
    mtu,
    ears: earsOf(lab, options, pods.slice(1)),
    kernels,
    learned: () => learnedBy(lab),
    [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](),
  };
}

async function worldOf(lab: Lab, { ovs = {}, nodes: links }: LabOptions, pods: readonly LabPod[]): Promise<World> {
  const { mode = "encap", tunnel = "geneve", tenants = "flat" } = ovs;
  const nodes = await Promise.all(lab.nodes.map((node) => nodeOf(node, pods, links[0] ?? "a")));
  const known = await Promise.all(pods.map(podOf));
  return {
    dataPath: "ovs",
    mode,
    tunnel: (mode === "encap" || mode === "hybrid" ? tunnel : "none") as World["tunnel"],
    projectsApart: tenants === "multitenant",
    nodes: nodes as [WorldNode, ...WorldNode[]],
    pods: known as [Pod, ...Pod[]],
    clusterNetworks: clusterNetworks.map(({ cidr }) => prefixOf(cidr)),
    services: [
      ...servicesTo(known, "other", "beside"),
      ...servicesTo(known, "apart", "behind"),
      ...tunnelServices(nodes),
    ],
    external: external.map(hexOf),
    others: await othersOn(lab.underlay.namespace),
  };
}

async function nodeOf(node: LabNode, pods: readonly LabPod[], link: Link): Promise<WorldNode> {
  const { mac, linkLocal } = await factsOf(node.namespace, gateway);
  const first = pods.find((pod) => pod.node === node);
  if (first === undefined) throw new Error(`Cannot describe ${node.name}: it has no pod, wanted one`);
  const { subnets } = await factsOf(first.namespace, "eth0");
  return {
    name: node.name,
    addresses: node.addresses.map(hexOf),
    mac: (await factsOf(node.namespace, "nic0")).mac,
    gateway: { ifname: gateway, mac, addresses: first.gateways.map(hexOf), linkLocal },
    subnets,
    onSameLink: node.link === link,
  };
}

async function podOf(pod: LabPod): Promise<Pod> {
  const { mac, addresses, linkLocal } = await factsOf(pod.namespace, "eth0");
  return { name: pod.name, node: pod.node.name, project: pod.project, mac, addresses, linkLocal };
}

function earsOf(lab: Lab, { nic }: LabOptions, pods: readonly LabPod[]): readonly Ear[] {
  const local = nic === "uplink" ? "br-int" : "br-phy";
  const ear = (role: Place["role"], node: LabNode, namespace: NetworkNamespace, ifname: string): Ear => ({
    place: { role, node: node.name },
    namespace,
    ifname,
  });
  return [
    ...pods.map(({ name, node, namespace }) => ({
      place: { role: "pod" as const, node: node.name, pod: name },
      namespace,
      ifname: "eth0",
    })),
    ...lab.nodes.flatMap((node) => [
      ear("gateway", node, node.namespace, gateway),
      ear("local", node, node.namespace, local),
      ear("wire", node, lab.underlay.namespace, `node${node.number}`),
    ]),
  ];
}

/** The MACs that links and switches have learned, and where tunnels end in the switches' eyes. */
async function learnedBy(lab: Lab): Promise<readonly Belief[]> {
  const kind = "learned" as const;
  const onLinks: { mac: string; ifname: string }[] = JSON.parse(await lab.underlay.namespace.run("bridge -j fdb show"));
  const beliefs: Belief[] = onLinks.map(({ mac, ifname }) => ({
    ...{ who: "underlay", kind, text: `${mac} at ${ifname}`, mac: hexOfMac(mac) },
  }));
  for (const { name: who, vswitch } of lab.nodes) {
    for (const bridge of (await vswitch.vsctl("list-br")).split("\n")) {
      const shown = await vswitch.switchControl("fdb/show", bridge);
      for (const [mac] of shown.matchAll(/([0-9a-f]{2}:){5}[0-9a-f]{2}/g))
        beliefs.push({ who, kind, text: `${mac} on ${bridge}`, mac: hexOfMac(mac) });
    }
    const ends = await vswitch.switchControl("tnl/neigh/show");
    for (const [, address = "", mac = ""] of ends.matchAll(/^(\S+)\s+([0-9a-f:]{17})/gm))
      beliefs.push({ who, kind, text: `${address} is at ${mac}`, address: hexOf(address), mac: hexOfMac(mac) });
  }
  return beliefs;
}
