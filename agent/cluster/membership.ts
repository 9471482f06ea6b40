import { retry } from "../../shared/async/backoff.ts";
import { LiveValue } from "../../shared/async/live-value.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { withTimeout } from "../../shared/async/with-timeout.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { formatCidr, formatIp, type Ip } from "../../shared/net/ip.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { type Admission, admission, admissionPolicyOf, literalAddresses, resolvedAddresses } from "./admission.ts";
import { CachedTenants } from "./cached-tenants.ts";
import type { Cluster } from "./cluster.ts";
import type { ClusterNode, Followed, NodeRegistry } from "./node-registry.ts";
import { sameNode } from "./node-text.ts";
import { ownEncryption } from "./own-key.ts";
import { peersOf, RefusalLog } from "./peers.ts";
import type { RegistryCache } from "./registry-cache.ts";
import { registryRetry, type Trouble } from "./registry-health.ts";
import type { OwnAddresses } from "./this-node.ts";

/** Nodes that appear together are gathered into one change, so that the data path handles them at once. */
const gatherMs = 50;
/** How long a start waits for a registry that is slow to tell the other nodes, before it goes on without them. */
const firstPeersMs = 2000;
/**
 * How long after a registration the registry's nodes may still be those of before it: they are followed by another way
 * than the registration goes.
 */
const olderNodesMs = 5_000;
/** How long after its last pod a released node restarts; also the interval of checking for pods. */
const leaveAfterMs = 2000;

export interface MembershipOptions {
  /** With the node's subnets. */
  readonly config: AgentConfig;
  readonly registry: NodeRegistry;
  /** This node as the registry has it, or had it when it was last heard of. */
  readonly self: ClusterNode;
  readonly own: OwnAddresses;
  readonly known: RegistryCache;
  /** Whether this node still has pods, whose addresses are of its subnet. */
  podsStand(): boolean;
  /** Registers the node; answers the registry's record of it. */
  register(): Promise<ClusterNode>;
  readonly logger: Logger;
}

/**
 * The origin of `self`. `refused`: running pods use it, but it is no longer the node's own, for the reason in the
 * sentence. `unconfirmed`: running pods use it, and the registry has not yet confirmed that it is the node's own.
 */
export type RegistrationState =
  | { readonly t: "registered" }
  | { readonly t: "known" }
  | { readonly t: "refused"; readonly is: string }
  | { readonly t: "unconfirmed"; readonly is: string };

/**
 * This node as a member of the cluster: it keeps its record alive, follows the other nodes, and notices when the
 * registry has lost its record. Then no pod gets an address, because the subnet may belong to another node by now;
 * running pods are left alone, and once they have gone the agent restarts to join again.
 */
export class Membership implements Cluster, AsyncDisposable {
  readonly self: ClusterNode;
  readonly linkAddresses: Cluster["linkAddresses"];
  readonly peers: LiveValue<ReadonlyMap<string, ClusterNode>>;
  readonly tenants: CachedTenants | undefined;
  readonly #options: MembershipOptions;
  readonly #followed: Followed<ReadonlyMap<string, ClusterNode>>;
  readonly #log: RefusalLog;
  /** The registry has told the other nodes. */
  readonly #heard = Promise.withResolvers<void>();
  readonly #lost = Promise.withResolvers<string>();
  readonly #ended = new AbortController();
  /** The policy that other nodes' records are checked against. */
  #wrongOf: Admission;
  #refusedRecords: readonly string[] = [];
  readonly #resolving: Promise<void>;
  #alive: AsyncDisposable | undefined;
  readonly #foreignKey: LogOnChange;
  #confirmed: boolean;
  #refused: string | undefined;
  /** Until the registry has answered a registration, its record of this node's name means nothing. */
  #isUnconfirmed: boolean;
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;
  /** While it runs, nodes without this one's record may be older than the record. */
  #appearing: ReturnType<typeof setTimeout> | undefined;
  #registering: Promise<void> | undefined;

  constructor(options: MembershipOptions, state: RegistrationState) {
    const { registry, self, own, known, logger } = options;
    this.#options = options;
    this.self = self;
    this.linkAddresses = own.linkAddresses;
    this.#foreignKey = new LogOnChange(logger, "error");
    this.#log = new RefusalLog(logger);
    this.#wrongOf = this.#admission(literalAddresses(registry.servers ?? []));
    this.#confirmed = state.t === "registered";
    // The cached peers are used until the registry answers.
    this.peers = new LiveValue(known.state.nodes.size === 0 ? undefined : this.#judged(known.state.nodes));
    if (state.t === "registered" || state.t === "known") known.join(self);
    if (state.t === "registered") this.#alive = registry.keepAlive(self);
    this.#isUnconfirmed = state.t === "unconfirmed";
    if (state.t === "unconfirmed") this.#wait(state.is);
    if (state.t === "known" || state.t === "unconfirmed") this.#registering = this.#confirm();
    this.tenants = registry.tenants === undefined ? undefined : new CachedTenants(registry.tenants, known, logger);
    this.#followed = registry.follow();
    this.#followed.subscribe(() => this.#gather());
    this.#resolving = this.#resolve(registry.servers ?? []);
    void this.#warnOfRights();
    if (state.t === "refused") this.#refuse(state.is);
  }

  /**
   * Resolves once the registry has told the other nodes, for some seconds at most: a data path that starts without one
   * of them removes the way to it that an earlier agent has made. What is cached may lack those that came shortly before
   * that agent was killed; it is enough where the registry is silent.
   */
  async firstPeers(): Promise<void> {
    if (!this.#confirmed && this.peers.current !== undefined) return;
    await withTimeout(this.#heard.promise, firstPeersMs, () => undefined);
  }

  async announce(): Promise<void> {
    await this.#options.register();
  }

  /** Why no pod may get an address of the node's subnet; nothing while the registry has the node's record, or is silent. */
  get refused(): string | undefined {
    return this.#refused;
  }

  /** Resolves with a sentence when only a restart helps. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** Records that this node does not accept, a sentence for each. */
  get refusals(): readonly string[] {
    return [...this.#refusedRecords, ...(this.tenants?.refusals ?? [])];
  }

  /** What does not work with the registry now. */
  get troubles(): readonly Trouble[] {
    return this.#options.registry.health.troubles;
  }

  /** For people. */
  describe(): string {
    const { name, subnets, addresses } = this.self;
    const peers = this.peers.current?.size ?? 0;
    const source = this.#confirmed
      ? this.#options.registry.name
      : `what was last known, not from ${this.#options.registry.name}`;
    return `node ${name} at ${textOf(addresses)} with ${subnets.map(formatCidr).join(", ")}, ${peers} others; from ${source}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    clearTimeout(this.#gathering);
    clearTimeout(this.#leaving);
    await this.#registering;
    // Set by what has just ended.
    clearTimeout(this.#appearing);
    await this.#resolving;
    await this.#alive?.[Symbol.asyncDispose]();
    await this.tenants?.[Symbol.asyncDispose]();
    await this.#followed[Symbol.asyncDispose]();
    await this.#options.known[Symbol.asyncDispose]();
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      const nodes = this.#followed.current;
      if (nodes !== undefined) this.#take(nodes);
      else if (this.peers.current !== undefined) this.peers.set(this.#judged(this.#options.known.state.nodes));
    }, gatherMs);
  }

  #take(nodes: ReadonlyMap<string, ClusterNode>): void {
    const { known } = this.#options;
    const record = nodes.get(this.self.name);
    this.#judge(record);
    if (record !== undefined) this.#correct(record);
    // If this node's record is missing, the registry may have been replaced by an empty one, so the known peers are
    // kept.
    const believed = record === undefined ? withForgotten(nodes, known.state.nodes) : nodes;
    const peers = this.#judged(believed);
    if (!sameMaps(this.peers.current, peers)) this.peers.set(peers);
    known.update({ nodes: peers });
    this.#heard.resolve();
  }

  /** Somebody has written another key for this node: the others would send to nobody. */
  #correct({ encryption }: ClusterNode): void {
    const { config, logger } = this.#options;
    if (!this.#confirmed || this.#refused !== undefined) return;
    try {
      if (Bun.deepEquals(encryption, ownEncryption(config))) return;
    } catch (caught) {
      // The other nodes are followed all the same.
      this.#foreignKey.log("the node's own key cannot be compared with the registry's", CniError.from(caught).message);
      return;
    }
    this.announce().then(
      () => this.#foreignKey.clear(),
      (caught: unknown) =>
        this.#foreignKey.log("the registry has another key of this node", CniError.from(caught).message),
    );
    logger.warn("the registry had another key of this node, which it is told again");
  }

  /** The peers among all nodes. */
  #judged(nodes: ReadonlyMap<string, ClusterNode>): ReadonlyMap<string, ClusterNode> {
    const { known } = this.#options;
    const before = known.state.admitted ? known.state.nodes : new Map<string, ClusterNode>();
    const { peers, refused } = peersOf(this.self, nodes, before, this.#wrongOf);
    this.#log.tell(refused);
    this.#refusedRecords = refused;
    return peers;
  }

  #admission(servers: readonly Ip[]): Admission {
    const { config, self, own } = this.#options;
    return admission(admissionPolicyOf(config, self, own.linkAddresses, servers));
  }

  /** Warns of rights in the registry that an attacker on this node would gain. */
  async #warnOfRights(): Promise<void> {
    const { registry, logger } = this.#options;
    const rights = (await registry.excessRights?.()) ?? [];
    if (rights.length > 0 && !this.#ended.signal.aborted)
      logger.warn("this node has more rights in the registry than a node needs", { rights });
  }

  /** Nothing waits for the look-ups: earlier records are checked again when they are done. */
  async #resolve(servers: readonly string[]): Promise<void> {
    const { logger } = this.#options;
    const { signal } = this.#ended;
    try {
      this.#wrongOf = this.#admission(await resolvedAddresses(servers, logger, signal));
      this.#gather();
    } catch (caught) {
      if (!signal.aborted) throw caught;
    }
  }

  /** Handles the registry's record of this node. */
  #judge(record: ClusterNode | undefined): void {
    if (this.#isUnconfirmed) return;
    if (record === undefined && this.#appearing !== undefined) return;
    this.#hasAppeared();
    const problem = contradiction(this.self, record, this.#options.registry.name);
    if (problem !== undefined) this.#refuse(problem);
    else if (this.#refused !== undefined) this.#recover();
  }

  /** After a registration: waits for the record among the nodes that are followed. */
  #appears(): void {
    this.#appearing = setTimeout(() => {
      this.#hasAppeared();
      this.#gather();
    }, olderNodesMs);
  }

  #hasAppeared(): void {
    clearTimeout(this.#appearing);
    this.#appearing = undefined;
  }

  #wait(is: string): void {
    const subnets = this.self.subnets.map(formatCidr).join(", ");
    this.#refused = `its pods have ${subnets}, which ${this.#options.registry.name} has not given it (${is})`;
  }

  #refuse(is: string): void {
    if (this.#refused === is) return;
    this.#options.logger.error(`This node gives no pod an address any more: ${is}`);
    this.#refused = is;
    this.#options.known.leave(is);
    this.#leaving ??= setTimeout(() => this.#leaveIfEmpty(), leaveAfterMs);
  }

  #recover(): void {
    this.#refused = undefined;
    this.#confirmed = true;
    clearTimeout(this.#leaving);
    this.#leaving = undefined;
    this.#options.logger.info("this node's record is in the registry again, and pods get addresses");
    this.#options.known.join(this.self);
    this.#alive ??= this.#options.registry.keepAlive(this.self);
  }

  #leaveIfEmpty(): void {
    this.#leaving = undefined;
    if (this.#options.podsStand()) this.#leaving = setTimeout(() => this.#leaveIfEmpty(), leaveAfterMs);
    else
      this.#lost.resolve(
        `Cannot go on as this node: ${this.#refused}, and no pod is left: wanted a new start, to join anew`,
      );
  }

  /** After a start without the registry: registers as soon as it answers, to confirm the node's record. */
  async #confirm(): Promise<void> {
    const { registry, logger, register } = this.#options;
    const { signal } = this.#ended;
    const registering = "register this node";
    const problem = new LogOnChange(logger);
    const failed = (caught: unknown): void => {
      const error = CniError.from(caught, "join");
      registry.health.failed(registering, error.message);
      if (this.#isUnconfirmed) this.#wait(error.message);
      const message = this.#isUnconfirmed ? "waiting to join" : "going on with what was last known of the other nodes";
      problem.log(message, error.message, { code: error.code });
    };
    // A refusal is an answer too, and ends the retries.
    const asked = (): Promise<ClusterNode | CniError> =>
      register().catch((caught: unknown) => {
        if (caught instanceof CniError && saysNo(caught)) return caught;
        throw caught;
      });
    try {
      const answer = await retry(asked, { ...registryRetry, signal, failed });
      registry.health.works(registering);
      this.#isUnconfirmed = false;
      const problem = answer instanceof CniError ? answer.message : contradiction(this.self, answer, registry.name);
      if (problem !== undefined) return this.#refuse(problem);
      this.#appears();
      if (this.#refused !== undefined) return this.#recover();
      this.#confirmed = true;
      this.#alive ??= registry.keepAlive(this.self);
      logger.info("the registry has this node as it was known");
    } catch (caught) {
      if (!signal.aborted) throw caught;
    }
  }
}

/**
 * Whether the registry answered and refuses the node: its name belongs to another machine, or there is no subnet for
 * it.
 */
export const saysNo = ({ code }: CniError): boolean => code === CniCode.invalidConfig || code === CniCode.ipamFailure;

/** Adds known nodes that the registry has lost, unless one of their subnets belongs to another node now. */
function withForgotten(
  nodes: ReadonlyMap<string, ClusterNode>,
  before: ReadonlyMap<string, ClusterNode>,
): ReadonlyMap<string, ClusterNode> {
  const taken = new Set([...nodes.values()].flatMap(({ subnets }) => subnets.map(formatCidr)));
  const forgotten = [...before].filter(
    ([name, { subnets }]) => !nodes.has(name) && !subnets.some((subnet) => taken.has(formatCidr(subnet))),
  );
  return new Map([...nodes, ...forgotten]);
}

const textOf = (addresses: readonly Ip[]): string => addresses.map(formatIp).join(", ");

/** Why, by this record, the node's subnet is not its own; nothing if it is. */
export function contradiction(
  self: ClusterNode,
  record: ClusterNode | undefined,
  registry: string,
): string | undefined {
  if (record === undefined) return `${registry} has no node "${self.name}" any more`;
  // Not every registry knows uids.
  if (record.uid !== "" && record.uid !== self.uid)
    return `${registry} has node "${self.name}" with the uid "${record.uid}", another machine at ${textOf(record.addresses)}`;
  const [now, before] = [record, self].map(({ subnets }) => subnets.map(formatCidr).sort().join(", "));
  return now === before
    ? undefined
    : `${registry} gives it ${now === "" ? "no subnet" : now}, and its pods have ${before}`;
}

function sameMaps(a: ReadonlyMap<string, ClusterNode> | undefined, b: ReadonlyMap<string, ClusterNode>): boolean {
  return a !== undefined && a.size === b.size && [...b].every(([name, node]) => sameNode(a.get(name), node));
}
