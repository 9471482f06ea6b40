import { parseIp } from "../../../shared/net/ip.ts";
import { parseMac } from "../../../shared/net/mac.ts";
import type { Hex } from "./parse.ts";
import type { Rule } from "./rules.ts";
import { hexOf, hexOfMac, loopbackPackets } from "./sites/facts.ts";
import type { Kernel, Site } from "./sites/site.ts";
import { virtualMac, type World } from "./world.ts";

/** Something that a kernel, a link or a switch believes, in its own words. */
export interface Belief {
  /** "n1", "n1/near", "underlay". */
  readonly who: string;
  readonly kind: "route" | "address" | "neighbour" | "learned" | "heard";
  readonly text: string;
  /** Of neighbours: who; of what was learned also, where that is about addresses. */
  readonly address?: Hex;
  /** Where that is, or what was learned. Absent: nobody has answered. */
  readonly mac?: Hex;
  /** Of neighbours, and of what the pods' own bridge learned. */
  readonly ifname?: string;
}

/** Something that changed and should not have. */
export interface Change {
  readonly rule: Rule;
  readonly belief: Belief;
  readonly text: string;
}

/** What stays the same while time passes. */
const steady = (line: string): string =>
  line.replace(/ (expires|valid_lft|preferred_lft) \S+|\\.*| tentative| linkdown/g, "").trim();

/** A kernel's own link-local addresses come a while after their interface. */
const isOwnLinkLocal = (line: string): boolean => /\b(anycast|local|inet6) fe80:/.test(line);

export async function beliefsOf(site: Site): Promise<readonly Belief[]> {
  const [learned, ...kernels] = await Promise.all([site.learned(), ...site.kernels.map(beliefsOfKernel)]);
  return [...kernels.flat(), ...learned];
}

async function beliefsOfKernel({ name: who, namespace }: Kernel): Promise<readonly Belief[]> {
  const [routes, routes6, addresses, neighbours, loopback] = await Promise.all([
    namespace.run("ip -4 -o route show table all"),
    namespace.run("ip -6 -o route show table all"),
    namespace.run("ip -o addr show"),
    namespace.run("ip -j neigh show"),
    loopbackPackets(namespace),
  ]);
  const lines = (text: string): readonly string[] =>
    text.split("\n").flatMap((line) => (line.trim() === "" || isOwnLinkLocal(line) ? [] : [steady(line)]));
  const known: readonly { readonly dst: string; readonly dev: string; readonly lladdr?: string }[] =
    JSON.parse(neighbours);
  return [
    ...[...lines(routes), ...lines(routes6)].map((text) => ({ who, kind: "route" as const, text })),
    ...lines(addresses).map((text) => ({ who, kind: "address" as const, text })),
    ...(loopback === 0 ? [] : [{ who, kind: "heard" as const, text: `${loopback} packets for loopback addresses` }]),
    ...known.map(({ dst, dev, lladdr }) => ({
      who,
      kind: "neighbour" as const,
      text: `${dst} on ${dev} is ${lladdr ?? "nowhere"}`,
      address: hexOf(dst),
      ifname: dev,
      ...(lladdr === undefined ? {} : { mac: hexOfMac(lladdr) }),
    })),
  ];
}

export const keyOf = ({ who, kind, text }: Belief): string => `${who} ${kind}: ${text}`;

/** What changed between two looks and cannot be explained by who is where. */
export function wrongChanges(world: World, before: readonly Belief[], after: readonly Belief[]): readonly Change[] {
  const [known, still] = [new Set(before.map(keyOf)), new Set(after.map(keyOf))];
  const come = after.filter((belief) => !known.has(keyOf(belief)));
  const gone = before.filter((belief) => !still.has(keyOf(belief)));
  // Each link has its own: a node on another one is where the router is.
  const truths = new Map([true, false].map((onSameLink) => [onSameLink, truthOf(world, onSameLink)]));
  const truthFor = ({ who }: Belief): Truth | undefined =>
    truths.get(world.nodes.find(({ name }) => who.split("/")[0] === name)?.onSameLink ?? true);
  return [
    ...come.flatMap((belief) => {
      const truth = truthFor(belief);
      const rule = truth && ruleAgainst(truth, belief);
      return rule === undefined ? [] : [{ rule, belief, text: `new ${belief.kind}: ${belief.text}` }];
    }),
    ...gone.flatMap((belief) =>
      belief.kind === "route" || belief.kind === "address"
        ? [{ rule: "configured" as const, belief, text: `lost ${belief.kind}: ${belief.text}` }]
        : [],
    ),
  ];
}

interface Truth {
  /** The MACs that an address may be believed to have. */
  readonly places: ReadonlyMap<Hex, ReadonlySet<Hex>>;
  /** Nodes and routers: what they say of themselves is theirs. */
  readonly machines: ReadonlySet<Hex>;
  /** Of nodes, to their pods. On other links a node asks for whoever is to be reached there, as every router does. */
  readonly toPods: ReadonlySet<string>;
}

/** @param here whether it is that of the attacker's link */
function truthOf({ nodes, pods, others }: World, here: boolean): Truth {
  const gateways = nodes.map(({ gateway }) => gateway.mac);
  const places = new Map<Hex, Set<Hex>>();
  const add = (addresses: readonly Hex[], ...macs: readonly Hex[]): void => {
    for (const address of addresses) places.set(address, new Set([...macs, ...gateways, virtualMac]));
  };
  for (const { addresses, linkLocal, mac } of pods) add([...addresses, linkLocal], mac);
  const routers = others.flatMap(({ mac }) => mac ?? []);
  for (const { addresses, gateway, mac, onSameLink } of nodes) {
    add(addresses, mac, ...(onSameLink === here ? [] : routers));
    add([...gateway.addresses, gateway.linkLocal], gateway.mac);
  }
  const machines = new Set([...gateways, ...nodes.map(({ mac }) => mac), ...routers]);
  return { places, machines, toPods: new Set(nodes.map(({ gateway }) => gateway.ifname)) };
}

function ruleAgainst({ places, machines, toPods }: Truth, { kind, address, mac, ifname }: Belief): Rule | undefined {
  if (kind === "route" || kind === "address") return "configured";
  if (kind === "heard") return "loopback";
  const may = address === undefined ? undefined : places.get(address);
  // Of the pods' own bridge there is told only what is not so.
  if (kind === "learned" && address === undefined)
    return mac !== undefined && machines.has(mac) && ifname === undefined ? undefined : "learned";
  if (mac === undefined) return may === undefined && ifname !== undefined && toPods.has(ifname) ? "crowded" : undefined;
  if (may !== undefined) return may.has(mac) ? undefined : "poisoned";
  return machines.has(mac) ? undefined : "poisoned";
}

/**
 * What a frame must contain to have caused a change: addresses and MACs of its words, and the prefixes of addresses
 * that somebody gave itself.
 */
export function tracesOf({ belief }: Change): readonly Hex[] {
  return belief.text.split(/[\s/]+/).flatMap((word) => {
    if (parseMac(word) !== undefined) return [hexOfMac(word.toLowerCase())];
    if (parseIp(word) === undefined) return [];
    const hex = hexOf(word);
    return hex.length === 32 && !hex.startsWith("fe80") ? [hex, hex.slice(0, 16)] : [hex];
  });
}
