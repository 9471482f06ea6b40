import type { Allocator } from "../ipam/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { type Cidr, contains, firstOf, formatCidr } from "../shared/net/ip.ts";
import { type Joined, joinCluster } from "./cluster/join.ts";
import type { Membership } from "./cluster/membership.ts";
import type { NodeRegistry } from "./cluster/node-registry.ts";
import type { Trouble } from "./cluster/registry-health.ts";
import type { AgentContext } from "./reconcile/mod.ts";

/** Refused records that are listed; a registry can have thousands. */
const maxRefusals = 200;

const ownSubnet =
  "wanted this node's own subnet: put its record right, or drain the node, which joins anew by itself once its pods have gone";

/**
 * Joins the agent to its cluster, and tells the state of that. Without `nodes` in the configuration there is nothing to
 * wait for.
 */
export class Joining {
  readonly #context: Pick<AgentContext, "config" | "allocator" | "logger">;
  readonly #registry: NodeRegistry | undefined;
  readonly #signal: AbortSignal;
  readonly #delayed = Promise.withResolvers<void>();
  readonly #lost = Promise.withResolvers<string>();
  #waiting: string | undefined;
  #membership: Membership | undefined;

  /** @param signal ends the attempt */
  constructor(
    context: Pick<AgentContext, "config" | "allocator" | "logger">,
    registry: NodeRegistry | undefined,
    signal: AbortSignal,
  ) {
    this.#context = context;
    this.#registry = registry;
    this.#signal = signal;
  }

  /** Resolves when joining takes longer, so that the rest of the start does not wait for it. */
  get delayed(): Promise<void> {
    return this.#delayed.promise;
  }

  /** Why the node has not joined yet. */
  get waiting(): string | undefined {
    return this.#waiting;
  }

  /** Resolves with a sentence when only a restart makes the node a member again. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** A description for people; empty if the node is no member. */
  get cluster(): string {
    return this.#membership?.describe() ?? "";
  }

  /** Records of the registry that the node does not accept, a sentence for each. */
  get refusals(): readonly string[] {
    const all = this.#membership?.refusals ?? [];
    return all.length <= maxRefusals
      ? all
      : [...all.slice(0, maxRefusals), `${all.length - maxRefusals} more records of the registry are refused`];
  }

  /**
   * Other nodes of the registry, each in one state, as far as the node is a member.
   * @param probed those that are probed; absent: nobody knows how they are reached
   */
  peersBy(probed?: Readonly<Record<string, number>>): Readonly<Record<string, number>> | undefined {
    const membership = this.#membership;
    if (membership === undefined) return undefined;
    return { ...(probed ?? { unknown: membership.peers.current?.size ?? 0 }), refused: membership.refusals.length };
  }

  /** What does not work with the registry since the node has joined. */
  get troubles(): readonly Trouble[] {
    return this.#membership?.troubles ?? [];
  }

  /** Why the node allocates no addresses now. */
  get refused(): string | undefined {
    const is = this.#membership?.refused;
    return is === undefined ? undefined : `Cannot give a pod an address: ${is}, ${ownSubnet}`;
  }

  /**
   * Nothing where the configuration has no `nodes`. The caller ends the membership.
   * @throws as `joinCluster`
   */
  async join(): Promise<Joined | undefined> {
    const { config, allocator, logger } = this.#context;
    const [network] = config.networks;
    if (this.#registry === undefined || config.nodes === undefined || network === undefined) return undefined;
    const joined = await joinCluster({
      config,
      nodes: config.nodes,
      registry: this.#registry,
      podsStand: (outside) => holdsAddresses(allocator, network.name, outside),
      podSubnets: () => subnetsHeld(allocator, network.name),
      logger,
      signal: this.#signal,
      waiting: (reason) => {
        this.#waiting = reason;
        this.#delayed.resolve();
      },
    });
    this.#waiting = undefined;
    this.#membership = joined.membership;
    void joined.membership.lost.then((sentence) => this.#lost.resolve(sentence));
    await joined.membership.firstPeers();
    logger.info("joined", { cluster: this.cluster });
    return joined;
  }

  /** Only the first network's come from the registry. @throws {CniError} 11 */
  requireAddresses(network: string): void {
    const refused = network === this.#context.config.networks[0]?.name ? this.refused : undefined;
    if (refused !== undefined) throw new CniError(CniCode.tryAgainLater, refused);
  }
}

/** Whether pods of the network hold addresses, outside of these subnets where some are given. */
function holdsAddresses(allocator: Allocator, network: string, outside: readonly Cidr[] = []): boolean {
  return Iterator.from(held(allocator, network)).some(
    (address) => !outside.some((subnet) => contains(subnet, address.ip)),
  );
}

/** For each family, the subnet that most addresses of the network's pods lie in. */
function subnetsHeld(allocator: Allocator, network: string): readonly Cidr[] {
  const counts = new Map<string, { readonly subnet: Cidr; count: number }>();
  for (const address of held(allocator, network)) {
    const subnet = { ip: firstOf(address), prefix: address.prefix };
    const key = formatCidr(subnet);
    counts.set(key, { subnet, count: (counts.get(key)?.count ?? 0) + 1 });
  }
  const largest = [...counts.values()].sort((a, b) => b.count - a.count).map(({ subnet }) => subnet);
  return ([4, 6] as const).flatMap((family) => largest.find(({ ip }) => ip.family === family) ?? []);
}

function* held(allocator: Allocator, network: string): Generator<Cidr, void> {
  for (const page of allocator.pages(network))
    for (const { state, address } of page) if (state !== "cooling") yield address;
}
