import type { CniResult } from "../../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Logger } from "../../../../shared/log.ts";
import { type Cidr, contains, formatIp, type Ip, lastOf, plus } from "../../../../shared/net/ip.ts";
import type { Hcn, HcnEndpoint, HcnFeatures, HcnNetwork } from "../../../protocols/hcn/mod.ts";
import type { RefusedService, ServicePort, ServiceProxy } from "../../services.ts";
import type { EndpointPolicy } from "../documents.ts";
import type { EndpointListing } from "../endpoint-listing.ts";
import { hnsError } from "../hns-errors.ts";
import type { HnsNetwork, HnsServiceSettings, NodeInterface } from "../options.ts";
import { Bringing, type BringingTools } from "./bring-about.ts";
import { Failures } from "./failures.ts";
import { isOwnId } from "./own-ids.ts";
import { describeSlot, planBalancers, planEndpoints, resolve } from "./plan.ts";
import { PresentBalancers } from "./present-balancers.ts";
import { policiesIn, remoteSubnetsOf } from "./service-endpoint.ts";
import { kinds, type NodeView, type Wanted, wantedOf } from "./wanted.ts";

export interface HnsServicesOptions {
  readonly hcn: Hcn;
  readonly logger: Logger;
  /** All endpoints of the node, which pods' endpoints are in as well. */
  readonly listing: EndpointListing;
  /** Of type L2Bridge or Overlay. */
  readonly network: HnsNetwork;
  readonly settings: HnsServiceSettings;
  /** Identifier of the network's HNS network. @throws {CniError} 11 while there is none */
  networkId(): string;
  /** Of the adapter with the node's address. */
  nodeInterface(): Promise<NodeInterface>;
  /** Between two listings of load balancers; for tests. */
  readonly listingMs?: number;
}

/** Between two listings of HNS' load balancers: each asks about every one by itself. */
const balancerListingMs = 30_000;

/** What a look at HNS has told of the network. */
interface SeenNetwork {
  readonly id: string;
  readonly network: HcnNetwork;
}

/**
 * Services as HNS' load balancers. Wanted and present are compared by whole documents, and what differs is changed; an
 * agent that starts takes over what stands. Nothing is kept on disk: what is ours tells so by its identifier.
 */
export class HnsServices implements ServiceProxy {
  readonly #options: HnsServicesOptions;
  readonly #tools: BringingTools;
  #features: HcnFeatures | undefined;
  #nodeInterface: NodeInterface | undefined;
  #seen: SeenNetwork | undefined;
  #ports: ReadonlyMap<string, ServicePort> | undefined;
  #wanted: Wanted | undefined;
  /** One run at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: HnsServicesOptions) {
    const { hcn, listing, logger } = options;
    this.#options = options;
    const balancers = new PresentBalancers(hcn);
    this.#tools = { hcn, listing, logger, balancers, failures: new Failures(), modify: { works: true } };
  }

  /** Asks HNS what it can do; to be called before pods are attached. @throws {HcnError} */
  async prepare(): Promise<void> {
    this.#features ??= await this.#tools.hcn.features();
  }

  /**
   * More policies of a pod's endpoint: with direct server return a pod answers itself, and reaches itself through a
   * service only where it sees another address than its own then.
   */
  policiesFor({ name }: HnsNetwork, { ips }: Pick<CniResult, "ips">): readonly EndpointPolicy[] {
    if (name !== this.#options.network.name || this.#features?.dsr !== true) return [];
    return ips.map(({ address: { ip } }) => ({ Type: "OutBoundNAT", Settings: { Destinations: [formatIp(ip)] } }));
  }

  /** An address that no pod may get: on an overlay, what endpoints see in place of a client. */
  get reserved(): readonly Ip[] {
    const { network } = this.#options;
    return network.hns.type === "Overlay" ? [sourceVipOf(network.subnet)] : [];
  }

  apply(wanted: ReadonlyMap<string, ServicePort>, signal: AbortSignal): Promise<readonly RefusedService[]> {
    return this.#inTurn(async () => {
      this.#ports = wanted;
      try {
        return await this.#bring(signal);
      } catch (caught) {
        throw laterError("put the services in force", caught);
      }
    });
  }

  /** Looks whether HNS has still what it was given, and repairs it. To be called after each listing of endpoints. */
  look(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#ports === undefined) return;
      const { listedAtMs } = this.#tools.balancers;
      const { listingMs = balancerListingMs } = this.#options;
      if (listedAtMs !== undefined && performance.now() - listedAtMs >= listingMs) this.#tools.balancers.distrust();
      try {
        await this.#bring(new AbortController().signal);
      } catch (caught) {
        this.#tools.logger.warn(laterError("look after the services", caught).message);
      }
    });
  }

  /** A pod's endpoint has come. */
  async endpointCame(ips: readonly Ip[]): Promise<void> {
    if (ips.some((ip) => this.#wanted?.awaited.has(formatIp(ip)) === true)) await this.look();
  }

  async differences(): Promise<readonly string[]> {
    return await this.#inTurn(async () => {
      const { balancers, listing } = this.#tools;
      if (this.#ports === undefined) return [];
      try {
        await listing.refresh();
        await this.#list();
        const wanted = wantedOf(this.#ports.values(), await this.#view());
        const endpoints = planEndpoints(wanted.endpoints, this.#endpointsHere());
        const plan = planBalancers(resolve(wanted.balancers, endpoints.standing), balancers.all());
        return [
          ...endpoints.make.map(({ wanted: { ip } }) => `the endpoint ${ip} is missing in HNS`),
          ...[...endpoints.taken].map(([ip, id]) => `the endpoint ${id}, which is not ours, has the address ${ip}`),
          ...plan.changes.map(({ wanted: one, from }) => {
            const is = from === undefined ? "missing in HNS" : "another in HNS";
            return `the load balancer of "${one.key}" (${one.kind} ${describeSlot(one)}) is ${is}`;
          }),
          ...[...plan.blocked].map(([slot, id]) => `the load balancer ${id}, which is not ours, has the place ${slot}`),
          ...[...plan.surplus, ...plan.inTheWay].map(({ id }) => `the load balancer ${id} is left over`),
          ...[...wanted.awaited].map(
            ([ip, keys]) => `HNS has no endpoint ${ip} yet, of this node, for ${keys.join(", ")}`,
          ),
          ...this.#withoutLoopback(),
          ...this.#opponent(),
        ];
      } catch (caught) {
        throw laterError("compare the services", caught);
      }
    });
  }

  /** For status: how much is wanted and in force, and what this HNS can do. */
  get summary(): string {
    const wanted = this.#wanted;
    const features = this.#features;
    if (wanted === undefined || features === undefined) return "no services yet";
    const { balancers } = this.#tools;
    const own = balancers.all().filter(({ id }) => isOwnId(id));
    const all = [...wanted.balancers.values()];
    const byKind = kinds.map((kind) => `${all.filter((one) => one.kind === kind).length} of ${kind}`).join(", ");
    const { version, ...probes } = features;
    const modifyLoadBalancer = probes.modifyLoadBalancer && this.#tools.modify.works;
    const can = Object.entries({ ...probes, modifyLoadBalancer });
    const withoutDsr = own.filter(({ isDsr }) => !isDsr).length;
    return [
      `${all.length} load balancers wanted (${byKind}), ${own.length} in HNS`,
      `${withoutDsr} of them with a block of 64 ports of the node each`,
      `${wanted.endpoints.size} endpoints of other nodes and services`,
      `HNS ${version}: ${can.map(([name, has]) => `${has ? "" : "no "}${name}`).join(", ")}`,
    ].join("; ");
  }

  /** Pods that were there before services were asked for. */
  #withoutLoopback(): readonly string[] {
    if (this.#features?.dsr !== true) return [];
    const pods = this.#endpointsHere().filter(({ namespaceId }) => namespaceId !== "");
    return pods.flatMap(({ addresses, document }) => {
      const own = policiesIn(document, "OutBoundNAT").flatMap(({ Destinations }) => Destinations);
      const [without] = addresses.filter(({ address }) => !own.includes(address));
      if (without === undefined) return [];
      return [
        `the pod ${without.address} is older than the services: it reaches itself through one when it is made anew`,
      ];
    });
  }

  #opponent(): readonly string[] {
    const { vanished, hasOpponent } = this.#tools.balancers;
    if (!hasOpponent) return [];
    return [
      `somebody removes the load balancers of services, ${vanished} so far, which Pipette makes again: kube-proxy does so where it runs beside, and has to be stopped`,
    ];
  }

  async #bring(signal: AbortSignal): Promise<readonly RefusedService[]> {
    const { balancers, listing, failures } = this.#tools;
    const ports = this.#ports ?? new Map<string, ServicePort>();
    for (let isLast = false; ; isLast = true) {
      if (isLast) await listing.refresh();
      if (isLast || balancers.listedAtMs === undefined || this.#seen?.id !== this.#options.networkId())
        await this.#list();
      const view = await this.#view();
      const wanted = wantedOf(ports.values(), view);
      this.#wanted = wanted;
      const aim = { networkId: this.#options.networkId(), view, wanted };
      const { refused, surprised } = await new Bringing(this.#tools, aim, { signal, isLast }).run();
      if (surprised && !isLast && !signal.aborted) continue;
      const standing = new Set([...balancers.all(), ...listing.all()].map(({ id }) => id));
      failures.keep((name) => wanted.balancers.has(name) || wanted.endpoints.has(name) || standing.has(name));
      return perKey([...wanted.refused, ...refused]);
    }
  }

  async #list(): Promise<void> {
    const { hcn, balancers, logger } = this.#tools;
    const id = this.#options.networkId();
    const network = await hcn.network(id);
    if (network === undefined)
      throw new CniError(CniCode.tryAgainLater, `Cannot see the HNS network of the services: HNS has no network ${id}`);
    this.#seen = { id, network };
    const vanished = await balancers.list();
    if (vanished > 0) logger.warn("load balancers of services are gone, and are made again", { count: vanished });
  }

  async #view(): Promise<NodeView> {
    const { network, settings } = this.#options;
    const { hns, subnet } = network;
    await this.prepare();
    if (this.#features === undefined || this.#seen === undefined)
      throw new CniError(CniCode.tryAgainLater, "Cannot balance services: HNS has not been looked at yet");
    const here = this.#endpointsHere();
    const health = here.find(({ name, isRemote }) => !isRemote && name !== "" && name === hns.healthEndpoint);
    const overlay =
      hns.type === "Overlay"
        ? { sourceVip: formatIp(sourceVipOf(subnet)), nodeMac: (await this.#interface()).mac }
        : undefined;
    return {
      remoteSubnets: remoteSubnetsOf(this.#seen.network),
      nodeAddress: hns.nodeAddress,
      ipv6: await this.#ipv6(this.#seen.network, this.#features),
      podSubnet: subnet,
      features: this.#features,
      proxyAll: settings.proxyAll,
      nodePorts:
        settings.nodePortAddresses.length === 0 ||
        settings.nodePortAddresses.some((block) => contains(block, hns.nodeAddress)),
      ...(overlay === undefined ? {} : { overlay }),
      local: new Map(
        here
          .filter(({ id, isRemote }) => !isRemote && !isOwnId(id))
          .flatMap(({ id, addresses }) => addresses.map(({ address }) => [address, id] as const)),
      ),
      ...(health === undefined ? {} : { healthEndpoint: health.id }),
    };
  }

  async #ipv6({ subnets }: HcnNetwork, { dualStack, version }: HcnFeatures): Promise<NodeView["ipv6"]> {
    const { type } = this.#options.network.hns;
    if (type === "Overlay" || !subnets.some(({ prefix }) => prefix.includes(":")))
      return { lacks: `the HNS network of type ${type} has no IPv6` };
    if (!dualStack) return { lacks: `HNS ${version} has no IPv6 beside IPv4` };
    const { ipv6 } = await this.#interface();
    return ipv6 === undefined
      ? { lacks: "the node has no IPv6 address, to which endpoints answer" }
      : { address: ipv6 };
  }

  async #interface(): Promise<NodeInterface> {
    this.#nodeInterface ??= await this.#options.nodeInterface();
    return this.#nodeInterface;
  }

  #endpointsHere() {
    const id = this.#options.networkId();
    return this.#tools.listing.all().filter(({ networkId }) => networkId === id);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** The last address that a pod could have: pods get theirs from the first on. */
const sourceVipOf = (subnet: Cidr): Ip => plus(lastOf(subnet), -1n);

/** All that is to be told of a service port in one. */
const perKey = (refused: readonly RefusedService[]): readonly RefusedService[] =>
  [...Map.groupBy(refused, ({ key }) => key)].map(([key, all]) => ({
    key,
    reason: [...new Set(all.map(({ reason }) => reason))].join("; "),
  }));

/** Whatever it is, another attempt may succeed. */
function laterError(action: string, caught: unknown): CniError {
  const error = hnsError(action, caught);
  if (error.code === CniCode.tryAgainLater) return error;
  return new CniError(CniCode.tryAgainLater, error.message, { cause: caught });
}

/**
 * Takes away all that services have made in HNS, as where there are to be none any more.
 * @param endpoints that HNS has
 * @returns what it has taken away
 */
export async function removeServices(
  hcn: Hcn,
  endpoints: readonly HcnEndpoint[],
): Promise<{ readonly balancers: readonly string[]; readonly endpoints: readonly string[] }> {
  const ownIn = (all: readonly { readonly id: string }[]): readonly string[] =>
    all.map(({ id }) => id).filter((id) => isOwnId(id));
  const balancers = ownIn(await hcn.loadBalancers());
  for (const id of balancers) await hcn.deleteLoadBalancer(id);
  const own = ownIn(endpoints);
  for (const id of own) await hcn.deleteEndpoint(id);
  return { balancers, endpoints: own };
}
