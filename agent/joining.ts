import type { Allocator } from "../ipam/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { type Cidr, contains } from "../shared/ip.ts";
import type { AgentParts } from "./agent-parts.ts";
import { type Joined, joinCluster } from "./nodes/join.ts";
import type { Membership } from "./nodes/membership.ts";
import type { NodeRegistry } from "./nodes/node-registry.ts";

/** Sentences for a person, who reads no more; a registry can have thousands of wrong records. */
const mostRefusals = 200;

/** The agent's way into its cluster, and where it stands there. A node that is no one's peer has nothing to wait for. */
export class Joining {
  readonly #parts: Pick<AgentParts, "config" | "allocator" | "logger">;
  readonly #registry: NodeRegistry | undefined;
  readonly #signal: AbortSignal;
  readonly #delayed = Promise.withResolvers<void>();
  readonly #lost = Promise.withResolvers<string>();
  #waiting: string | undefined;
  #membership: Membership | undefined;

  /** @param signal ends the attempt */
  constructor(
    parts: Pick<AgentParts, "config" | "allocator" | "logger">,
    registry: NodeRegistry | undefined,
    signal: AbortSignal,
  ) {
    this.#parts = parts;
    this.#registry = registry;
    this.#signal = signal;
  }

  /** Resolves when it is known that joining takes longer. Nobody else's start may wait for it. */
  get delayed(): Promise<void> {
    return this.#delayed.promise;
  }

  /** Why the node has not joined yet. */
  get waiting(): string | undefined {
    return this.#waiting;
  }

  /** Resolves, with a sentence, when only a new start makes the node a member again. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** For people; empty where the node is no member. */
  get cluster(): string {
    return this.#membership?.describe() ?? "";
  }

  /** What of the registry the node does not take, in sentences. */
  get refusals(): readonly string[] {
    const all = this.#membership?.refusals ?? [];
    return all.length <= mostRefusals
      ? all
      : [...all.slice(0, mostRefusals), `${all.length - mostRefusals} more records of the registry are refused`];
  }

  /** Why the node gives no addresses now. */
  get refused(): string | undefined {
    const is = this.#membership?.refused;
    return is === undefined ? undefined : `Cannot give a pod an address: ${is}, wanted this node's own subnet`;
  }

  /**
   * Nothing where the configuration has no `nodes`. The membership is the caller's to end.
   * @throws as `joinCluster`
   */
  async join(): Promise<Joined | undefined> {
    const { config, allocator, logger } = this.#parts;
    const [network] = config.networks;
    if (this.#registry === undefined || config.nodes === undefined || network === undefined) return undefined;
    const joined = await joinCluster({
      config,
      nodes: config.nodes,
      registry: this.#registry,
      podsStand: (outside) => holdsAddresses(allocator, network.name, outside),
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
    logger.info("joined", { cluster: this.cluster });
    return joined;
  }

  /** Only the first network's come from the registry. @throws {CniError} 11 */
  requireAddresses(network: string): void {
    const refused = network === this.#parts.config.networks[0]?.name ? this.refused : undefined;
    if (refused !== undefined) throw new CniError(CniCode.tryAgainLater, refused);
  }
}

/** Whether pods of the network hold addresses, outside of these subnets where some are given. */
function holdsAddresses(allocator: Allocator, network: string, outside: readonly Cidr[] = []): boolean {
  return allocator
    .list()
    .some(
      ({ owner, state, address }) =>
        owner.network === network && state !== "cooling" && !outside.some((subnet) => contains(subnet, address.ip)),
    );
}
