import { LiveValue } from "../../shared/async/live-value.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { formatCidr, formatIp, type Ip } from "../../shared/net/ip.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { type Admission, admission } from "./admissible.ts";
import type { Cluster } from "./cluster.ts";
import type { ClusterNode, Followed, NodeRegistry } from "./node-registry.ts";
import { sameNode } from "./node-text.ts";
import type { OwnAddresses } from "./own-addresses.ts";
import { peersOf, RefusalLog } from "./peers.ts";
import type { RegistryCache } from "./registry-cache.ts";
import type { Trouble } from "./registry-health.ts";
import { CachedTenants } from "./remembered-tenants.ts";
import { untilDone } from "./retry.ts";
import { literalAddresses, resolvedAddresses } from "./server-addresses.ts";
import { admissionPolicyOf } from "./surroundings.ts";

/** Many nodes that come at once make one change: the data path's work for it is one piece. */
const gatherMs = 50;
/** A node that is no member, and has no pods, starts anew this long after; between two looks at its pods as well. */
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
  /** Registers the node; what it answers is how the registry has it. */
  register(): Promise<ClusterNode>;
  readonly logger: Logger;
}

/**
 * Where `self` is from. `refused`: it is what pods still use, and no more the node's own, as the sentence says. `stranded`:
 * it is what pods use, and this registry has not said yet whether it is the node's own.
 */
export type RegistrationState =
  | { readonly t: "registered" }
  | { readonly t: "known" }
  | { readonly t: "refused"; readonly is: string }
  | { readonly t: "stranded"; readonly is: string };

/**
 * This node as one of the cluster: it says that it lives, follows the others, and notices when the registry has its
 * record no more. Then no pod gets an address of a subnet that may be another node's by now; those that run are left alone,
 * and once they have gone only a new start can help.
 */
export class Membership implements Cluster, AsyncDisposable {
  readonly self: ClusterNode;
  readonly linkAddresses: Cluster["linkAddresses"];
  readonly peers: LiveValue<ReadonlyMap<string, ClusterNode>>;
  readonly tenants: CachedTenants | undefined;
  readonly #options: MembershipOptions;
  readonly #followed: Followed<ReadonlyMap<string, ClusterNode>>;
  readonly #log: RefusalLog;
  readonly #lost = Promise.withResolvers<string>();
  readonly #ended = new AbortController();
  /** What other nodes' records are held against. */
  #wrongOf: Admission;
  #refusedRecords: readonly string[] = [];
  readonly #resolving: Promise<void>;
  #alive: AsyncDisposable | undefined;
  #confirmed: boolean;
  #refused: string | undefined;
  /** Until the registry has answered it knows nothing of this node, and what it has under its name says nothing. */
  #isStranded: boolean;
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;
  #registering: Promise<void> | undefined;

  constructor(options: MembershipOptions, standing: RegistrationState) {
    const { registry, self, own, known, logger } = options;
    this.#options = options;
    this.self = self;
    this.linkAddresses = own.linkAddresses;
    this.#log = new RefusalLog(logger);
    this.#wrongOf = this.#admission(literalAddresses(registry.servers ?? []));
    this.#confirmed = standing.t === "registered";
    // What is known serves until the registry answers, which may be never.
    this.peers = new LiveValue(known.state.nodes.size === 0 ? undefined : this.#judged(known.state.nodes));
    if (standing.t === "registered" || standing.t === "known") known.join(self);
    if (standing.t === "registered") this.#alive = registry.keepAlive(self);
    this.#isStranded = standing.t === "stranded";
    if (standing.t === "stranded") this.#wait(standing.is);
    if (standing.t === "known" || standing.t === "stranded") this.#registering = this.#confirm();
    this.tenants = registry.tenants === undefined ? undefined : new CachedTenants(registry.tenants, known, logger);
    this.#followed = registry.follow();
    this.#followed.subscribe(() => this.#gather());
    this.#resolving = this.#resolve(registry.servers ?? []);
    void this.#warnOfRights();
    if (standing.t === "refused") this.#refuse(standing.is);
  }

  /** Why no pod may get an address of the node's subnet; nothing while the registry has the node's record, or is silent. */
  get refused(): string | undefined {
    return this.#refused;
  }

  /** Resolves, with a sentence, when only a new start helps. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** What of the registry this node does not take, a sentence for each. */
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
    // A registry that has lost this node may have been replaced by an empty one, for all nodes at once.
    const believed = record === undefined ? withForgotten(nodes, known.state.nodes) : nodes;
    const peers = this.#judged(believed);
    if (!sameMaps(this.peers.current, peers)) this.peers.set(peers);
    known.update({ nodes: peers });
  }

  /** Of all nodes the peers. */
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

  /** Whoever takes a node over has its rights in the registry. */
  async #warnOfRights(): Promise<void> {
    const { registry, logger } = this.#options;
    const rights = (await registry.excessRights?.()) ?? [];
    if (rights.length > 0 && !this.#ended.signal.aborted)
      logger.warn("this node has more rights in the registry than a node needs", { rights });
  }

  /** Nobody waits for names: the records of before are judged once more when they are known. */
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

  /** What the registry says of this node itself. */
  #judge(record: ClusterNode | undefined): void {
    if (this.#isStranded) return;
    const problem = contradiction(this.self, record, this.#options.registry.name);
    if (problem !== undefined) this.#refuse(problem);
    else if (this.#refused !== undefined) this.#recover();
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

  /** Started without the registry: makes sure, as soon as it answers, that it still has this node so. */
  async #confirm(): Promise<void> {
    const { registry, logger, register } = this.#options;
    const { signal } = this.#ended;
    const registering = "register this node";
    const failed = (error: CniError): void => {
      registry.health.failed(registering, error.message);
      if (this.#isStranded) this.#wait(error.message);
      const message = this.#isStranded ? "waiting to join" : "going on with what was last known of the other nodes";
      logger.warn(message, { error: error.message, code: error.code });
    };
    // An answer that says no is an answer.
    const asked = (): Promise<ClusterNode | CniError> =>
      register().catch((caught: unknown) => {
        if (caught instanceof CniError && saysNo(caught)) return caught;
        throw caught;
      });
    try {
      const answer = await untilDone(asked, { signal, failed });
      registry.health.works(registering);
      this.#isStranded = false;
      const problem = answer instanceof CniError ? answer.message : contradiction(this.self, answer, registry.name);
      if (problem !== undefined) return this.#refuse(problem);
      if (this.#refused !== undefined) return this.#recover();
      this.#confirmed = true;
      this.#alive ??= registry.keepAlive(this.self);
      logger.info("the registry has this node as it was known");
    } catch (caught) {
      if (!signal.aborted) throw caught;
    }
  }
}

/** The registry was reached, and does not take the node: its name is another machine's, or there is no subnet for it. */
export const saysNo = ({ code }: CniError): boolean => code === CniCode.invalidConfig || code === CniCode.ipamFailure;

/** With those that it has no more, unless one of their subnets is another's now. */
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

/** Why the node's subnet is not its own by this record; nothing where it is. */
export function contradiction(
  self: ClusterNode,
  record: ClusterNode | undefined,
  registry: string,
): string | undefined {
  if (record === undefined) return `${registry} has no node "${self.name}" any more`;
  // Not every registry knows the uid of every node.
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
