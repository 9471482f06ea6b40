import type { NetworkNamespace } from "../support/network-namespace.ts";
import type { UpgradeNode, UpgradePod } from "./upgrade-node.ts";

/** What `ip -j` tells, as far as it must stay as it is. */
interface Link {
  readonly ifindex: number;
  readonly ifname: string;
  readonly ifalias?: string;
  readonly address: string;
  readonly mtu: number;
  readonly master?: string;
  readonly flags: readonly string[];
  readonly addr_info: readonly { readonly local: string; readonly prefixlen: number }[];
}

interface Route {
  readonly dst: string;
  readonly table?: string;
}

/** What pods and their peers could notice of a node, as text by subject: no change of releases may change any of it. */
export type Standing = ReadonlyMap<string, string>;

/** Interfaces with their numbers, MACs and addresses, routes, ports and leases, of the node and of these pods. */
export async function standing(node: UpgradeNode, pods: readonly UpgradePod[]): Promise<Standing> {
  const names = new Set(pods.flatMap(({ result }) => result.interfaces.map(({ name }) => name)));
  const found = new Map<string, string>();
  const outside = await lookInto(node.namespace);
  for (const [name, text] of outside.links) if (names.has(name)) found.set(`node ${name}`, text);
  const inside = await Promise.all(
    pods.map(async ({ name, namespace }) => {
      const { links, routes } = await lookInto(namespace);
      return [`pod ${name}`, [...links.values(), routes].join("\n")] as const;
    }),
  );
  for (const [name, text] of inside) found.set(name, text);
  found.set("routes", outside.routes);
  found.set("ports", await node.ports());
  using store = await node.home.store();
  const own = new Set(pods.map(({ containerId }) => containerId));
  for (const { owner, address, state, generation } of store.list())
    if (own.has(owner.sandboxId)) found.set(`lease ${address.ip.value} ${owner.sandboxId}`, `${state} ${generation}`);
  return found;
}

/** What a release tells kernel and switch of packets: it may be other than what another one does. */
export interface Told {
  readonly rules: string;
  /** Flows of each pod, by the number that the pod's have in their cookies. */
  readonly pods: ReadonlyMap<string, string>;
  readonly others: readonly string[];
}

export async function told(node: UpgradeNode): Promise<Told> {
  const { ofPods, others } = await node.flows();
  const pods = Map.groupBy(ofPods, (flow) => flow.slice(0, flow.indexOf(",")));
  const texts = new Map([...pods].map(([pod, flows]) => [pod, flows.join("\n")]));
  return { rules: ownRules(await node.namespace.run("nft --stateless --terse list ruleset")), pods: texts, others };
}

/** But for the rules about pods' ports, on a bridge and beside a switch, which an earlier release neither has nor takes away. */
const ownRules = (rules: string): string => rules.replace(/^table (bridge |\w+ pipette-beside-)[\s\S]*?^\}\n?/gm, "");

/** The kernel gives these, a second or two after an interface is up. */
const isOfLink = (address: string): boolean => /^(fe80:|ff00:)/.test(address);

/** One process for each namespace: there are many. */
async function lookInto(namespace: NetworkNamespace): Promise<{ links: ReadonlyMap<string, string>; routes: string }> {
  const said = await namespace.run("ip -j -batch -", "addr show\nroute show table all\n");
  const [links = [], routes = []]: [Link[]?, Route[]?] = JSON.parse(`[${said.replaceAll(/\]\s*\[/g, "],[")}]`);
  return {
    links: new Map(
      links.map(({ ifindex, ifname, ifalias, address, mtu, master, flags, addr_info }) => {
        const all = addr_info.map(({ local, prefixlen }) => `${local}/${prefixlen}`);
        const addresses = all.filter((address) => !isOfLink(address)).sort();
        const words = [ifindex, ifname, ifalias, address, mtu, master, [...flags].sort(), addresses];
        return [ifname, JSON.stringify(words)];
      }),
    ),
    routes: routes
      .filter(({ dst, table }) => table !== "local" && !isOfLink(dst))
      .map((route) => JSON.stringify(route))
      .sort()
      .join("\n"),
  };
}
