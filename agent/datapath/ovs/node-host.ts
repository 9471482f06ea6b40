import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { RefusedRoute } from "../routes.ts";
import { dropNodePort } from "./database/node-bridge.ts";
import { interfaceNamed, readInUserSpace, type SwitchDatabase } from "./database/switch-database.ts";
import { nodeRoutes } from "./node-routes.ts";
import { gatewayOf } from "./node-set-up.ts";
import type { OvsNodeOptions } from "./options.ts";
import type { PodPort } from "./overlay-node.ts";
import type { PipelineContext } from "./pipeline/context.ts";

/** What the overlay needs of the node's own network: the gateway, routes, the addresses that an uplink brings along. */
export class NodeHost {
  readonly #options: OvsNodeOptions;
  readonly #db: SwitchDatabase;
  /** The gateway's device at the last set-up: another one has no addresses and no routes. */
  #device: number | undefined;
  /** The last set-up has failed or is under way, or somebody may have changed something since. */
  #isStale = false;
  /** Tried again with the next set-up. */
  #refusedRoutes: readonly RefusedRoute[] = [];

  constructor(options: OvsNodeOptions, db: SwitchDatabase) {
    this.#options = options;
    this.#db = db;
  }

  /** Routes that the system does not take. */
  get refusedRoutes(): readonly RefusedRoute[] {
    return this.#refusedRoutes;
  }

  get isStale(): boolean {
    return this.#isStale;
  }

  /** Since the last set-up. */
  get hasOtherGateway(): boolean {
    return this.#gatewayDevice() !== this.#device;
  }

  /** It is set up again at the next reconciliation. */
  markStale(): void {
    this.#isStale = true;
  }

  /** The gateway's addresses, and the node's way to other nodes' pods and to services. @throws {CniError} */
  async setUp(
    context: PipelineContext,
    nodes: ReadonlyMap<string, ClusterNode>,
    pods: Iterable<PodPort>,
  ): Promise<void> {
    const { host } = this.#options;
    const device = this.#gatewayDevice();
    this.#isStale = true;
    await host.useGateway(gatewayOf(this.#options));
    this.#refusedRoutes = await host.setRoutes(nodeRoutes(this.#options, context, nodes, pods));
    this.#device = device;
    // One that is refused now, as with its interface down, may be taken later.
    this.#isStale = this.#refusedRoutes.length > 0;
  }

  /** The node's own addresses, which its uplink brings to the bridge. @throws {CniError} */
  async keepAddresses(): Promise<void> {
    const { uplink, bridge, host } = this.#options;
    if (uplink !== undefined) await host.keepAddresses(uplink, bridge);
  }

  /** A switch in user space reads these beside the node, which has its own addresses elsewhere. @throws {CniError} */
  async leaveToSwitch(): Promise<void> {
    const { kind, host } = this.#options;
    if (kind === "netdev") await host.leaveToSwitch(readInUserSpace(this.#db.view));
  }

  /**
   * Takes away the port of a gateway whose device somebody has deleted, so that it is made anew: the switch goes on as if
   * the device were there. @throws {OvsdbError | CniError}
   */
  async dropLostGateway(): Promise<void> {
    const { host, bridge, gateway } = this.#options;
    if (!(await host.hasInterface(gateway))) await dropNodePort(this.#db, bridge, gateway);
  }

  /** The gateway is set up as if it were another. */
  forgetGateway(): void {
    this.#device = undefined;
  }

  #gatewayDevice(): number | undefined {
    return interfaceNamed(this.#db.view, this.#options.gateway)?.ifindex;
  }
}
