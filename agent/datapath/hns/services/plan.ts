import { type Cidr, contains, parseIp } from "../../../../shared/net/ip.ts";
import type { HcnEndpoint } from "../../../protocols/hcn/mod.ts";
import { type LoadBalancer, type PresentBalancer, textOf } from "./load-balancer.ts";
import { isOwnId } from "./own-ids.ts";
import { isAsWanted, isConjured, type ServiceEndpoint } from "./service-endpoint.ts";
import type { WantedBalancer } from "./wanted.ts";

/** What to do about endpoints, once those that cannot be used are known. */
export interface EndpointPlan {
  /** Identifiers by address, of what stands as it is to be: ours, and others' that stand for the same. */
  readonly standing: ReadonlyMap<string, string>;
  /** In this order; `instead` goes first, as HNS refuses a second of one address. */
  readonly make: readonly { readonly wanted: ServiceEndpoint; readonly instead: readonly string[] }[];
  /** Addresses that somebody else's endpoint holds, with its identifier. */
  readonly taken: ReadonlyMap<string, string>;
}

/** @param present of the one network */
export function planEndpoints(
  wanted: ReadonlyMap<string, ServiceEndpoint>,
  present: readonly HcnEndpoint[],
): EndpointPlan {
  const byAddress = Map.groupBy(present.flatMap(eachAddress), ([address]) => address);
  const standing = new Map<string, string>();
  const taken = new Map<string, string>();
  const make: EndpointPlan["make"][number][] = [];
  for (const [ip, one] of wanted) {
    const holders = (byAddress.get(ip) ?? []).map(([, endpoint]) => endpoint);
    const own = holders.filter(({ id }) => isOwnId(id));
    const good = own.find((endpoint) => isAsWanted(endpoint, one));
    const others = holders.find(({ id }) => !isOwnId(id));
    if (good !== undefined) standing.set(ip, good.id);
    else if (others === undefined) make.push({ wanted: one, instead: own.map(({ id }) => id) });
    else if (others.isRemote && one.isRemote) standing.set(ip, others.id);
    else taken.set(ip, others.id);
  }
  return { standing, make, taken };
}

const eachAddress = (endpoint: HcnEndpoint): (readonly [string, HcnEndpoint])[] =>
  endpoint.addresses.map(({ address }) => [address, endpoint] as const);

/**
 * Endpoints to delete when everything else is done: ours that nothing needs any more, in whatever network; and what
 * others have left of another node's at an address of this node's pods, where it would be in the way of a pod.
 * @param used identifiers that are wanted, or that a load balancer still leads to
 */
export function surplusEndpoints(
  present: readonly HcnEndpoint[],
  used: ReadonlySet<string>,
  podSubnet: Cidr,
): readonly HcnEndpoint[] {
  const isInTheWay = (endpoint: HcnEndpoint): boolean =>
    isConjured(endpoint) &&
    endpoint.addresses.some(({ address }) => {
      const ip = parseIp(address);
      return ip !== undefined && contains(podSubnet, ip);
    });
  return present.filter((endpoint) => (isOwnId(endpoint.id) ? !used.has(endpoint.id) : isInTheWay(endpoint)));
}

/** A load balancer that is to be, with the identifiers of its endpoints. */
export interface Resolved {
  readonly wanted: WantedBalancer;
  readonly balancer: LoadBalancer;
}

/** @param ids of endpoints on other nodes, by address; what is not there yet is left out */
export function resolve(
  balancers: ReadonlyMap<string, WantedBalancer>,
  ids: ReadonlyMap<string, string>,
): ReadonlyMap<string, Resolved> {
  const resolved = new Map<string, Resolved>();
  for (const [slot, wanted] of balancers) {
    const { local, remote, key: _, kind: _kind, ...rest } = wanted;
    const endpoints = [...new Set([...local, ...remote.flatMap((ip) => ids.get(ip) ?? [])])].sort();
    // HNS takes none for an error.
    if (endpoints.length > 0) resolved.set(slot, { wanted, balancer: { ...rest, endpoints } });
  }
  return resolved;
}

/** How HNS' load balancers become those that are wanted, in this order. */
export interface BalancerPlan {
  /** Ours that hold the place of one that is wanted, beside one that stays. */
  readonly inTheWay: readonly PresentBalancer[];
  /** `from`: ours in the same place that says something else. */
  readonly changes: readonly (Resolved & {
    readonly slot: string;
    readonly text: string;
    readonly from?: PresentBalancer;
  })[];
  /** Ours that nobody wants. */
  readonly surplus: readonly PresentBalancer[];
  /** Places that somebody else's load balancer holds, with its identifier. */
  readonly blocked: ReadonlyMap<string, string>;
}

export function planBalancers(wanted: ReadonlyMap<string, Resolved>, present: Iterable<PresentBalancer>): BalancerPlan {
  const own = new Map<string, PresentBalancer[]>();
  const foreign = new Map<string, string>();
  const inTheWay: PresentBalancer[] = [];
  const surplus: PresentBalancer[] = [];
  for (const balancer of present) {
    const [slot, ...more] = balancer.slots;
    if (!isOwnId(balancer.id)) for (const each of balancer.slots) foreign.set(each, balancer.id);
    // One that HNS shows without its port cannot be ours as we made it.
    else if (slot === undefined || more.length > 0 || !wanted.has(slot)) surplus.push(balancer);
    else own.set(slot, [...(own.get(slot) ?? []), balancer]);
  }
  const changes: BalancerPlan["changes"][number][] = [];
  const blocked = new Map<string, string>();
  for (const [slot, resolved] of wanted) {
    const text = textOf(resolved.balancer);
    const standing = own.get(slot) ?? [];
    const kept = standing.find((each) => each.text === text) ?? standing[0];
    inTheWay.push(...standing.filter((each) => each !== kept));
    const holder = foreign.get(slot);
    if (kept?.text === text) continue;
    if (holder !== undefined) blocked.set(slot, holder);
    else changes.push({ ...resolved, slot, text, ...(kept === undefined ? {} : { from: kept }) });
  }
  return { inTheWay, changes, surplus, blocked };
}

/** For people: `10.96.0.10 port 53/UDP`. */
export const describeSlot = ({ vip, protocol, port }: Pick<LoadBalancer, "vip" | "protocol" | "port">): string =>
  `${vip ?? "node"} port ${port}/${protocol === 17 ? "UDP" : "TCP"}`;
