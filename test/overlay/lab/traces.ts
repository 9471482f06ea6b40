import type { LabNode } from "./lab-node.ts";

/** What stands on a node because of its pods. Two looks are equal where nothing has been lost or left over. */
export interface Traces {
  /** Addresses whose lease is not merely cooling. */
  readonly leases: readonly string[];
  readonly interfaces: readonly string[];
  readonly ports: readonly string[];
  /** Without their cookies, which tell of the agent's starts. */
  readonly flows: readonly string[];
}

export async function tracesOn(node: LabNode): Promise<Traces> {
  const [list, links, ports, flows] = await Promise.all([
    node.pipette("ipam", "list", "--json", "--data-dir", node.home.dataDir),
    node.namespace.run("ip -j link"),
    node.vswitch.vsctl("list-ports", "br-int"),
    node.flows(),
  ]);
  const leases: readonly { readonly state: string; readonly address: string }[] = JSON.parse(list);
  const interfaces: readonly { readonly ifname: string }[] = JSON.parse(links);
  return {
    leases: leases.flatMap(({ state, address }) => (state === "cooling" ? [] : [address.replace(/\/.*/, "")])).sort(),
    interfaces: interfaces.map(({ ifname }) => ifname).sort(),
    ports: ports.split("\n").sort(),
    flows: flows.map((flow) => flow.replace(/^cookie=0x[0-9a-f]+, /, "")).sort(),
  };
}

/** Whether a flow or a route of the node says something of the /24 that the address is in. */
export async function knowsSubnetOf(node: LabNode, address: string): Promise<boolean> {
  const subnet = address.replace(/\d+$/, "0/24");
  return [...(await node.flows()), await node.namespace.run("ip route")].join("\n").includes(subnet);
}

/** Destinations of the routes that the agent has made, sorted. */
export async function routesOf(node: LabNode): Promise<readonly string[]> {
  const all = await Promise.all([4, 6].map((family) => node.namespace.run(`ip -${family} route show proto 112`)));
  return all
    .flatMap((text) => text.split("\n"))
    .flatMap((line) => line.split(" ")[0] || [])
    .sort();
}
