import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { RefusedRoute } from "../routes.ts";
import { dropNodePort } from "./database/node-bridge.ts";
import { interfaceNamed, readInUserSpace, type SwitchDatabase } from "./database/switch-database.ts";
import { nodeRoutes, virtualHosts } from "./node-routes.ts";
import { gatewayOf } from "./node-set-up.ts";
import type { OvsNodeOptions } from "./options.ts";
import type { Encrypted, PodPort, ServiceWays } from "./overlay-node.ts";
import type { PipelineContext } from "./pipeline/context.ts";

/** In the place of an address: that of node ports. */
export const nodePortsName = "node ports";

/** The node's own network for the overlay: the gateway, routes, and an uplink's addresses. */
export class NodeHost {
  readonly #options: OvsNodeOptions;
  readonly #db: SwitchDatabase;
  /** The gateway's device at the last set-up; a new device has no addresses and routes. */
  #device: number | undefined;
  /** The last set-up has failed or is running, or somebody may have changed something since. */
  #isStale = false;
  /** Refused routes, which the next set-up tries again. */
  #refusedRoutes: readonly RefusedRoute[] = [];
  /** External IPs of services, and load balancers'; absent until they are known. */
  #serviceIps: readonly Ip[] | undefined;
  #ownIps: ReadonlySet<string> = new Set();
  /** Why packets to other nodes are not encrypted, and do not leave. */
  #encrypted: Encrypted = { strangers: [] };

  constructor(options: OvsNodeOptions, db: SwitchDatabase) {
    this.#options = options;
    this.#db = db;
  }

  /** Routes that the system does not take. */
  get refusedRoutes(): readonly RefusedRoute[] {
    return this.#refusedRoutes;
  }

  /** What keeps packets to other nodes from being encrypted, in sentences. */
  get unencrypted(): readonly string[] {
    const { strangers, failure } = this.#encrypted;
    return failure === undefined ? strangers : [failure, ...strangers];
  }

  /** What of it the next set-up tries again. */
  get encryptionFailure(): string | undefined {
    return this.#encrypted.failure;
  }

  get isStale(): boolean {
    return this.#isStale;
  }

  /** Whether the gateway's device has been replaced since the last set-up. */
  get hasOtherGateway(): boolean {
    return this.#gatewayDevice() !== this.#device;
  }

  /** The next reconciliation sets it up again. */
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
    // The kernel keeps what is for its own addresses, whatever the routes say.
    const { services, serviceCidrs } = this.#options;
    const wanted = this.#serviceIps ?? [];
    this.#ownIps = new Set(wanted.length === 0 ? [] : (await host.ownAddresses()).map(formatIp));
    const serviceIps = wanted.filter((ip) => !this.#ownIps.has(formatIp(ip)));
    const areUnknown = services?.proxyAll === true && this.#serviceIps === undefined;
    this.#encrypted = (await host.encrypt?.(nodes.values())) ?? { strangers: [] };
    this.#refusedRoutes = await host.setRoutes(
      nodeRoutes(this.#options, context, nodes, pods, serviceIps),
      // Those of an earlier agent.
      areUnknown ? virtualHosts(serviceCidrs) : [],
    );
    this.#device = device;
    // A refused route, for example because its interface is down, may succeed later.
    this.#isStale = this.#refusedRoutes.length > 0 || this.#encrypted.failure !== undefined;
  }

  /** Gives to the bridge what services are asked for; addresses with the next set-up. @throws {CniError} */
  async serve({ ips, ...ways }: ServiceWays): Promise<void> {
    await this.#options.host.serve?.(ways);
    const texts = (all: readonly Ip[] | undefined): string | undefined => all?.map(formatIp).join();
    if (texts(ips) === texts(this.#serviceIps)) return;
    this.#serviceIps = ips;
    this.#isStale = true;
  }

  /** Why addresses of services do not lead to the bridge, by address; of node ports by `nodePortsName`. */
  get unserved(): ReadonlyMap<string, string> {
    const routes = this.#refusedRoutes.map(({ route, why }) => [formatIp(route.dst.ip), why] as const);
    const own = [...this.#ownIps].map((ip) => [ip, "it is an address of the node itself"] as const);
    const { host } = this.#options;
    const nodePorts =
      host.serve === undefined ? [[nodePortsName, "the system gives nothing of its own to the switch"] as const] : [];
    return new Map([...routes, ...own, ...nodePorts]);
  }

  /** Moves the uplink's addresses to the bridge. @throws {CniError} */
  async keepAddresses(): Promise<void> {
    const { uplink, bridge, host } = this.#options;
    if (uplink !== undefined) await host.keepAddresses(uplink, bridge);
  }

  /** Isolates the interfaces of a user space switch from the node's kernel. @throws {CniError} */
  async leaveToSwitch(): Promise<void> {
    const { kind, host } = this.#options;
    if (kind === "netdev") await host.leaveToSwitch(readInUserSpace(this.#db.view));
  }

  /**
   * Removes the port of a gateway whose device was deleted, so that it is created again, because the switch does not
   * notice the deletion.
   * @throws {OvsdbError | CniError}
   */
  async dropLostGateway(): Promise<void> {
    const { host, bridge, gateway } = this.#options;
    if (!(await host.hasInterface(gateway))) await dropNodePort(this.#db, bridge, gateway);
  }

  /** Forces a new set-up of the gateway. */
  forgetGateway(): void {
    this.#device = undefined;
  }

  #gatewayDevice(): number | undefined {
    return interfaceNamed(this.#db.view, this.#options.gateway)?.ifindex;
  }
}
