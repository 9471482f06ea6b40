import type { Live } from "../../../shared/async/live-value.ts";
import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../shared/log.ts";
import { type Cidr, contains, formatCidr } from "../../../shared/net/ip.ts";
import { addressOnLink } from "../../cluster/cluster.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import { listRoutes, type NetlinkSocket, readRoute } from "../../protocols/netlink/mod.ts";
import { routeProtocol, setNodeRoutes } from "../linux/node-routes.ts";
import { type NodeRoute, type RefusedRoute, refusedRoute } from "../routes.ts";

/** The cluster that this node has joined. */
export interface BridgeCluster {
  /** `name` of the network that the nodes share; others are this node's alone. */
  readonly network: string;
  /** This node's own, with the length of their network's prefix. */
  readonly nodeAddresses: readonly Cidr[];
  readonly peers: Live<ReadonlyMap<string, ClusterNode>>;
  /** The networks that all nodes' subnets are cut from; absent: unknown. */
  readonly networks?: readonly Cidr[];
}

interface OtherNodesOptions {
  readonly cluster: BridgeCluster;
  readonly socket: NetlinkSocket;
  /**
   * Updates the packet rules when the destinations change that pods reach under their own addresses.
   * @throws {CniError}
   */
  setRules(): Promise<void>;
  readonly logger: Logger;
}

/** Nodes that are named in one sentence. */
const maxNamed = 5;

/**
 * Lets a bridge's pods and those of other nodes reach each other under their own addresses: by routes over the nodes'
 * common link, and by exempting them from masquerade. Both follow the registry, as with Open vSwitch's `noEncap`.
 */
export class OtherNodes implements AsyncDisposable {
  readonly #options: OtherNodesOptions;
  readonly #reconciling: ReconcileLoop;
  #following: Disposable | undefined;
  /** Tried again until the kernel takes them. */
  #refused: readonly RefusedRoute[] = [];

  constructor(options: OtherNodesOptions) {
    this.#options = options;
    this.#reconciling = new ReconcileLoop({
      what: "the way to other nodes",
      reconcile: () => this.#reconcile(),
      logger: options.logger,
    });
  }

  /** Destinations that a network's pods reach under their own addresses, beside their own subnets. */
  exempt(network: string): readonly Cidr[] {
    const { cluster } = this.#options;
    if (network !== cluster.network) return [];
    return cluster.networks ?? this.#peers.flatMap(({ subnets }) => subnets);
  }

  /** Repeatable. @throws {CniError} 102 */
  async start(): Promise<void> {
    await this.#reconciling.run();
    this.#following ??= this.#options.cluster.peers.subscribe(() => this.#reconciling.trigger());
  }

  /** Sets the routes again, since somebody may have deleted some. */
  trigger(): void {
    this.#reconciling.trigger();
  }

  /** Nodes whose pods are not reached, in sentences. @throws {NetlinkError} */
  shortcomings(): readonly string[] {
    return [...this.#refused.map((route) => refusedRoute(route).message), ...this.#beyond()];
  }

  /** Routes and rules stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#following?.[Symbol.dispose]();
    await this.#reconciling[Symbol.asyncDispose]();
  }

  /** @returns what was refused; the rest is done all the same */
  async #reconcile(): Promise<string | undefined> {
    await this.#options.setRules();
    // While nobody knows the other nodes, the routes of an earlier agent are the best guess.
    if (this.#options.cluster.peers.current === undefined) return undefined;
    this.#refused = setNodeRoutes(this.#options.socket, this.#routes());
    const [first] = this.#refused;
    return first === undefined ? undefined : refusedRoute(first).message;
  }

  #routes(): readonly NodeRoute[] {
    return this.#peers.flatMap((node) =>
      node.subnets.flatMap((dst): NodeRoute[] => {
        const via = this.#viaLink(node, dst);
        return via === undefined ? [] : [{ dst, via, by: "transport" }];
      }),
    );
  }

  /** Nodes behind a router without a route to their pods that somebody else made; a default route does not count. */
  #beyond(): readonly string[] {
    const { socket } = this.#options;
    const away = this.#peers.flatMap((node) => {
      const subnets = node.subnets.filter((subnet) => this.#viaLink(node, subnet) === undefined);
      return subnets.length === 0 ? [] : [{ name: node.name, subnets }];
    });
    if (away.length === 0) return [];
    const known = ([4, 6] as const)
      .flatMap((family) => socket.dump(listRoutes(family), readRoute))
      .filter(({ dst, protocol }) => dst.prefix > 0 && protocol !== routeProtocol);
    const isKnown = (subnet: Cidr): boolean =>
      known.some(({ dst }) => dst.prefix <= subnet.prefix && contains(dst, subnet.ip));
    const lost = away.filter(({ subnets }) => !subnets.every(isKnown));
    if (lost.length === 0) return [];
    const named = lost
      .slice(0, maxNamed)
      .map(({ name, subnets }) => `"${name}" (${subnets.map(formatCidr).join(", ")})`)
      .join(", ");
    const more = lost.length > maxNamed ? ` and ${lost.length - maxNamed} more nodes` : "";
    return [
      `Cannot set routes to the pods of ${named}${more}: this node shares no link with them, wanted nodes on one link, routes to these pods made here and on the routers between, or "dataPath: ovs" with "mode: hybrid"`,
    ];
  }

  #viaLink(node: ClusterNode, { ip: { family } }: Cidr): NodeRoute["via"] | undefined {
    return addressOnLink(this.#options.cluster.nodeAddresses, node, family);
  }

  get #peers(): readonly ClusterNode[] {
    return [...(this.#options.cluster.peers.current?.values() ?? [])];
  }
}
