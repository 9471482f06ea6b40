import { pause } from "../../../shared/async/abortable.ts";
import { retry } from "../../../shared/async/backoff.ts";
import { containerKind } from "../../../shared/cni/container-kind.ts";
import type { CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, contains, gatewayIn, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { type HcnEndpoint, HcnError } from "../../protocols/hcn/mod.ts";
import type { Attached, AttachRequest, DataPath, Missing, Problem } from "../datapath.ts";
import { hostIfname } from "../owner-names.ts";
import { endpointDocument, overlayMac, policiesOf } from "./documents.ts";
import { EndpointListing } from "./endpoint-listing.ts";
import { EndpointRecords, endpointId, endpointRecords } from "./endpoint-records.ts";
import { findOrMake, join, NetworkGone, remove, type WiringTools } from "./endpoint-wiring.ts";
import { hnsError } from "./hns-errors.ts";
import { ensureNetwork, findNetwork } from "./hns-network.ts";
import type { HnsDataPathOptions, HnsNetwork } from "./options.ts";
import { HnsPolicies } from "./policies/hns-policies.ts";
import { LostEndpoints } from "./remake.ts";
import { compare, resultOf } from "./result.ts";
import { HnsServices, removeServices } from "./services/mod.ts";

/** How long a record outlives its endpoint whose creation was given up. */
const unsureMs = 3_600_000;
/**
 * How long the agent's start waits for HNS, which may still be booting; after that its supervisor restarts the agent.
 */
const startMs = 60_000;
/** Between two attempts of a start while HNS is away. */
const startPauseMs = 1_000;
/** Between two listings of HNS' endpoints: each asks about every endpoint by itself. */
const listingMs = 10_000;
/** So many times as long as a look takes HNS is left alone after it: of thousands of endpoints it takes seconds. */
const restsPerLook = 4;

/** @throws {CniError} code 5 where the record of our endpoints cannot be read */
export function createHnsDataPath(options: HnsDataPathOptions): DataPath {
  const directory = endpointRecords(options.dataDir);
  try {
    return new HnsDataPath(options, EndpointRecords.open(directory));
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(CniCode.io, `Cannot read "${directory}": ${is}, wanted a directory of our own`, { cause });
  }
}

/** Pods as endpoints of HNS. An endpoint's owner follows from its identifier. All state is in HNS and the records. */
class HnsDataPath implements DataPath {
  readonly policies: HnsPolicies;
  /** Absent where none are wanted, or the network is of a type that HNS does not balance on. */
  readonly services?: HnsServices;
  readonly #options: HnsDataPathOptions;
  readonly #networks: ReadonlyMap<string, HnsNetwork>;
  readonly #tools: WiringTools;
  readonly #lost: LostEndpoints;
  /** Identifiers of the HNS networks that stand, by the network's name. */
  readonly #ids = new Map<string, string>();
  /** Why HNS, or a network, does not serve; by the network's name, or empty for HNS itself. */
  readonly #trouble = new Map<string, string>();
  readonly #stopping = new AbortController();
  /** The periodic listing, once started. */
  #watching: Promise<void> | undefined;

  constructor(options: HnsDataPathOptions, records: EndpointRecords) {
    const { hcn, logger, networks } = options;
    this.#options = options;
    this.#networks = new Map(networks.map((network) => [network.name, network]));
    const listing = new EndpointListing(() => hcn.endpoints());
    const nodeIps = (name: string): readonly Ip[] => nodeIpsOf(this.#networks.get(name));
    this.policies = new HnsPolicies({ hcn, listing, records, logger, nodeIps });
    this.#tools = { hcn, logger, records, listing, policies: this.policies };
    this.#lost = new LostEndpoints(this.#tools);
    const balanced = networks.find(({ hns }) => hns.type !== "Transparent");
    if (options.services === undefined || balanced === undefined) return;
    this.services = new HnsServices({
      hcn,
      logger,
      listing: this.#tools.listing,
      network: balanced,
      settings: options.services,
      networkId: () => this.#requireStanding(balanced, "balance services"),
      nodeInterface: () => options.node.nodeInterface(balanced),
      ...(options.servicesListingMs === undefined ? {} : { listingMs: options.servicesListingMs }),
    });
  }

  async start(): Promise<void> {
    const { startPatienceMs = startMs, logger } = this.#options;
    const untilMs = performance.now() + (this.#watching === undefined ? startPatienceMs : 0);
    await retry(() => this.#prepare(), {
      firstMs: startPauseMs,
      longestMs: startPauseMs,
      signal: this.#stopping.signal,
      failed: (caught) => {
        const error = hnsError("prepare the HNS networks", caught);
        this.#trouble.set("", error.message);
        if (error.code !== CniCode.tryAgainLater || performance.now() >= untilMs) throw error;
        logger.warn("HNS does not serve yet", { error: error.message });
      },
    });
    this.#watching ??= this.#watch();
  }

  async #prepare(): Promise<void> {
    for (const network of this.#networks.values()) {
      this.#ids.delete(network.name);
      this.#ids.set(network.name, await ensureNetwork(this.#options, network));
      this.#trouble.delete(network.name);
    }
    await this.#tools.listing.refresh();
    await this.policies.review();
    if (this.services !== undefined) await this.services.prepare();
    else if (this.#watching === undefined) await this.#removeServices();
    this.#trouble.delete("");
    this.#reviewRecords();
  }

  /** What an earlier agent has made of services that are no longer wanted would still lead packets astray. */
  async #removeServices(): Promise<void> {
    const { listing, hcn, logger } = this.#tools;
    try {
      const { balancers, endpoints } = await removeServices(hcn, listing.all());
      for (const id of endpoints) listing.forget(id);
      if (balancers.length > 0) logger.info("no services are wanted: took their load balancers away", { balancers });
    } catch (caught) {
      // Pods can do without.
      logger.warn("load balancers of an earlier agent may be left", { error: reasonOf(caught) });
    }
  }

  async attach(request: AttachRequest): Promise<CniResult> {
    const { owner, container, ipam, ownLease } = request;
    const action = `attach "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const network = this.#networkOf(owner, action);
    const networkId = this.#requireStanding(network, action);
    this.#lost.watch(endpointId(owner));
    const first = ipam.ips[0]?.address.ip;
    const mac = request.mac ?? (network.hns.type === "Overlay" && first !== undefined ? overlayMac(first) : undefined);
    const plan = {
      name: hostIfname(owner, request.pod),
      ipam,
      policies: [
        ...policiesOf(network, request.portMappings ?? []),
        ...(this.services?.policiesFor(network, ipam) ?? []),
      ],
      ...(mac === undefined ? {} : { mac }),
    };
    const { kind } = container;
    try {
      const endpoint = await findOrMake(this.#tools, {
        owner,
        ownLease,
        networkId,
        plan,
        joins: kind.t === "workload",
      });
      request.phases?.enter("policies");
      await this.policies.cover(owner, endpoint);
      request.phases?.enter("port");
      await join(this.#tools, endpoint, container);
      if (kind.t === "sandbox" && kind.namespace !== undefined) {
        // A second write, because only now the MAC is known that HNS has chosen. An earlier record must not say that
        // the endpoint existed: after a kill, an endpoint that HNS creates late would pass for a lost one, and a DEL
        // would drop the record before it appears.
        const kept = endpoint.mac === "" ? {} : { MacAddress: endpoint.mac };
        const document = { ...endpointDocument(networkId, plan), ...kept };
        this.#tools.records.put(endpoint.id, {
          ...this.#tools.records.get(endpoint.id),
          owner,
          ownLease,
          made: { namespace: kind.namespace, document },
        });
      }
      void this.services?.endpointCame(ipsOf(endpoint));
      return resultOf(ipam, endpoint, owner, container.netns);
    } catch (caught) {
      throw this.#judge(network, action, caught);
    }
  }

  /** A missing network or service affects all pods and is repaired before the next one. */
  #judge(network: HnsNetwork, action: string, caught: unknown): CniError {
    const error = hnsError(action, caught);
    if (caught instanceof HcnError && caught.isServiceAway) this.#trouble.set("", error.message);
    if (!(caught instanceof NetworkGone)) return error;
    const is = `the HNS network "${network.hns.network}" has gone`;
    this.#lose(network, `Cannot ${action}: ${is}`);
    return new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}`, { cause: caught });
  }

  async detach(owner: Owner): Promise<void> {
    const action = `detach "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const id = endpointId(owner);
    this.#lost.unwatch(id);
    try {
      await remove(this.#tools, owner, await this.#options.hcn.endpoint(id));
      this.#lost.watch(id);
    } catch (caught) {
      throw hnsError(action, caught);
    }
  }

  missing(): readonly Missing[] {
    return this.#lost.all();
  }

  async remake({ owner }: Missing, addresses: readonly Ip[] | undefined): Promise<boolean> {
    const action = `make the endpoint of "${owner.ifname}" of sandbox "${owner.sandboxId}" again`;
    const network = this.#networkOf(owner, action);
    const networkId = this.#requireStanding(network, action);
    try {
      return (await this.#lost.remake(endpointId(owner), networkId, addresses)) !== undefined;
    } catch (caught) {
      throw this.#judge(network, action, caught);
    }
  }

  async check(owner: Owner, netns: string, prevResult: CniResult): Promise<void> {
    const action = `check "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    this.#networkOf(owner, action);
    const kind = containerKind(netns);
    try {
      const endpoint = await this.#options.hcn.endpoint(endpointId(owner));
      compare(endpoint, owner, kind.t === "sandbox" ? kind.namespace : undefined, prevResult);
    } catch (caught) {
      throw hnsError(action, caught);
    }
  }

  async list(): Promise<readonly Attached[]> {
    const { listing, records } = this.#tools;
    try {
      await listing.refresh();
    } catch (caught) {
      throw hnsError("list the endpoints", caught);
    }
    return records.all().flatMap(([id, { owner, ownLease }]): Attached[] => {
      const endpoint = listing.get(id);
      return endpoint === undefined ? [] : [{ owner, ownLease, hostIfname: endpoint.name }];
    });
  }

  async addresses(owner: Owner): Promise<readonly Cidr[]> {
    const action = `read the addresses of "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const { subnet } = this.#networkOf(owner, action);
    try {
      const endpoint = await this.#options.hcn.endpoint(endpointId(owner));
      return (endpoint?.addresses ?? []).flatMap(({ address, prefixLength }): Cidr[] => {
        const ip = parseIp(address);
        if (ip === undefined || !contains(subnet, ip)) return [];
        return [{ ip, prefix: prefixLength === 0 ? subnet.prefix : prefixLength }];
      });
    } catch (caught) {
      throw hnsError(action, caught);
    }
  }

  addressesInUse(owner: Owner): readonly Ip[] {
    const own = endpointId(owner);
    const others = this.#tools.listing.all().filter((endpoint) => endpoint.id !== own);
    return [...others.flatMap((endpoint) => ipsOf(endpoint)), ...(this.services?.reserved ?? [])];
  }

  async problems(): Promise<readonly Problem[]> {
    return [...this.#trouble.values()].map((message) => ({ code: CniCode.notAvailable, message }));
  }

  async degraded(): Promise<readonly string[]> {
    return [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort(new CniError(CniCode.tryAgainLater, "Cannot prepare the HNS networks: the agent stops"));
    // First, since it ends the calls that a listing may wait for.
    await this.#options.hcn[Symbol.asyncDispose]();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    for (let tookMs = 0; ; ) {
      await pause(Math.max(this.#options.listingMs ?? listingMs, restsPerLook * tookMs), signal);
      if (signal.aborted) return;
      const beganMs = performance.now();
      await this.#look();
      tookMs = performance.now() - beganMs;
    }
  }

  /** Lists endpoints and checks our networks; `problems` reports what is wrong. */
  async #look(): Promise<void> {
    try {
      for (const network of this.#networks.values()) {
        const found = await findNetwork(this.#options.hcn, network);
        if (found?.id === this.#ids.get(network.name)) continue;
        this.#lose(network, `Cannot serve network "${network.name}": its HNS network has gone`);
      }
      await this.#tools.listing.refresh();
      this.#trouble.delete("");
      this.#reviewRecords();
      await this.#reviewPolicies();
      await this.services?.look();
    } catch (caught) {
      const error = hnsError("look after the endpoints", caught);
      this.#trouble.set("", error.message);
      this.#options.logger.warn(error.message);
    }
  }

  /** Puts back what somebody has taken away, and what a call that was given up has done late. */
  async #reviewPolicies(): Promise<void> {
    try {
      await this.policies.review();
    } catch (caught) {
      this.#options.logger.warn("endpoints have other ACLs than network policies want", { error: reasonOf(caught) });
    }
  }

  #lose(network: HnsNetwork, message: string): void {
    this.#ids.delete(network.name);
    this.#trouble.set(network.name, message);
  }

  /** Finds endpoints that HNS created after their owner had left. */
  #reviewRecords(): void {
    const { listing, records, logger } = this.#tools;
    const nowMs = Date.now();
    for (const [id, record] of records.all()) {
      const { owner, goneSinceMs } = record;
      const stands = listing.get(id) !== undefined;
      if (stands && goneSinceMs !== undefined) {
        logger.warn("an endpoint was made after its creation had been given up, and goes again", { id, ...owner });
        this.#options.needsCleanup(owner);
      } else if (!stands && goneSinceMs !== undefined && nowMs - goneSinceMs > unsureMs) records.remove(id);
      // An earlier agent ended while it was being created; one that had existed was lost later.
      else if (!stands && this.#watching === undefined && record.made === undefined)
        records.put(id, { ...record, unsure: true, goneSinceMs: nowMs });
    }
  }

  #networkOf(owner: Owner, action: string): HnsNetwork {
    const network = this.#networks.get(owner.network);
    if (network !== undefined) return network;
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot ${action}: network "${owner.network}" is not configured, wanted one of ${[...this.#networks.keys()].join(", ")}`,
    );
  }

  #requireStanding(network: HnsNetwork, action: string): string {
    const id = this.#ids.get(network.name);
    if (id !== undefined) return id;
    const why = this.#trouble.get(network.name) ?? this.#trouble.get("") ?? "it is being made";
    throw new CniError(
      CniCode.tryAgainLater,
      `Cannot ${action}: the HNS network "${network.hns.network}" does not stand`,
      { details: why },
    );
  }
}

/** The node reaches its pods by its adapter on their network, which is their gateway. */
const nodeIpsOf = (network: HnsNetwork | undefined): readonly Ip[] =>
  network === undefined ? [] : [network.hns.nodeAddress, gatewayIn(network.subnet)];

const ipsOf = ({ addresses }: HcnEndpoint): Ip[] => addresses.flatMap(({ address }) => parseIp(address) ?? []);
