import { ReconcileLoop } from "../../../../shared/async/reconcile-loop.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { CniError } from "../../../../shared/errors.ts";
import { type Cidr, formatCidr } from "../../../../shared/net/ip.ts";
import type { Kernel, NetlinkSocket } from "../../../protocols/netlink/mod.ts";
import { interfaceError } from "../../linux/kernel-errors.ts";
import { type ForwardedNetwork, installPacketRules, missingPacketRules } from "../../linux/packet-rules.ts";
import { PresentPods } from "../../linux/present-pods.ts";
import { virtualHosts } from "../node-routes.ts";
import type { OvsDataPathOptions } from "../options.ts";
import type { PodPort } from "../overlay-node.ts";
import { packetsOf } from "../pipeline/mod.ts";
import { type ServiceSets, switchedServices } from "./service-sets.ts";

type Options = Pick<
  OvsDataPathOptions,
  | "gateway"
  | "mode"
  | "tunnel"
  | "podSubnets"
  | "masquerade"
  | "clusterSubnets"
  | "services"
  | "serviceCidrs"
  | "peers"
  | "tenants"
  | "encryption"
  | "logger"
>;

/**
 * The node's packet rules for pods: masquerade packets to destinations outside of the cluster, keep the source between
 * pods if projects are isolated, and drop forbidden packets and those to absent pods. The cluster's networks change
 * with its nodes.
 */
export class Masquerade implements AsyncDisposable {
  readonly #options: Options;
  readonly #reconciling: ReconcileLoop;
  /** Absent where the node has no subnets of its own. */
  readonly #present: PresentPods | undefined;
  readonly #services: ServiceSets | undefined;
  #following: Disposable | undefined;
  #installed: string | undefined;
  #network: ForwardedNetwork | undefined;
  /** What pods can do because the node has no packet rules. */
  #shortcoming: string | undefined;

  /**
   * @param filters socket for packet filters, which lives as long
   * @param services where the switch balances also what the node and others ask for
   */
  constructor(options: Options, filters: NetlinkSocket, services?: ServiceSets) {
    this.#options = options;
    this.#services = services;
    const { gateway: bridge, podSubnets: subnets } = options;
    this.#present = subnets.length === 0 ? undefined : new PresentPods(filters, { bridge, subnets });
    this.#reconciling = new ReconcileLoop({
      what: "the way out of the node",
      reconcile: () => this.#install(),
      logger: options.logger,
    });
  }

  /** Existing pods; to be called before `start`. */
  adopt(pods: Iterable<Pick<PodPort, "owner" | "ips">>): void {
    this.#present?.restore(pods);
  }

  /** @throws {CniError} 102 with what `nft` or the kernel said */
  async start(): Promise<void> {
    // A repeated start restores deleted rules.
    this.#installed = undefined;
    await this.#reconciling.run();
    this.#following ??= this.#options.peers.subscribe(() => this.#reconciling.trigger());
  }

  /** To be called before the pod is connected. @throws {CniError} 102 */
  admit(pod: Pick<PodPort, "owner" | "ips">): void {
    this.#orUnguarded("tell the node of a pod's addresses", () => this.#present?.admit(pod));
  }

  /** To be called once the pod is disconnected. */
  dismiss(owner: Owner): void {
    try {
      this.#orUnguarded("forget a pod's addresses", () => this.#present?.dismiss(owner));
    } catch (caught) {
      // Harmless: until the rules are installed again the node only sends ARP for the addresses.
      this.#options.logger.error(CniError.from(caught).message);
    }
  }

  /** Which installed rules somebody has deleted; `start` restores them. */
  async missing(kernel: Kernel): Promise<readonly string[]> {
    if (this.#installed === undefined || this.#network === undefined || this.#shortcoming !== undefined) return [];
    return [
      ...(await missingPacketRules(kernel, [this.#network])),
      ...(this.#present?.missing() ?? []),
      ...(this.#services?.missing() ?? []),
    ];
  }

  degraded(): readonly string[] {
    return this.#shortcoming === undefined ? [] : [this.#shortcoming];
  }

  /** The rules stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#following?.[Symbol.dispose]();
    await this.#reconciling[Symbol.asyncDispose]();
  }

  async #install(): Promise<undefined> {
    const { gateway, podSubnets: subnets, mode, services, serviceCidrs, encryption } = this.#options;
    const isTunnelled = encryption !== "wireguard" && (mode === "encap" || mode === "hybrid");
    const tunnel = isTunnelled ? { tunnel: packetsOf(this.#options.tunnel) } : {};
    // In `networkPolicyOnly` the other plugin does that.
    const masquerade = this.#options.masquerade && mode !== "networkPolicyOnly";
    const exempt = this.#cluster();
    const text = exempt.map(formatCidr).join();
    if (text === this.#installed) return undefined;
    // The node's own connections to a service have the virtual host's address as source when they leave to an outside
    // endpoint.
    const nodeLocal = services === undefined ? [] : virtualHosts(serviceCidrs);
    const switched =
      this.#services === undefined ? {} : { services: switchedServices(gateway, services?.nodePortAddresses ?? []) };
    const multitenant = this.#options.tenants !== undefined;
    this.#network = { bridge: gateway, subnets, masquerade, exempt, nodeLocal, multitenant, ...tunnel, ...switched };
    this.#shortcoming = await installPacketRules([this.#network]);
    // The sets were deleted with the table. Until they are back the node sends ARP for any address; no pod is cut off.
    this.#orUnguarded("install the packet rules about absent pods", () => this.#present?.install());
    this.#orUnguarded("tell the node of services", () => this.#services?.install());
    this.#installed = text;
    return undefined;
  }

  /** If pods may work without packet rules, a failure here is only logged. */
  #orUnguarded(action: string, work: () => void): void {
    try {
      work();
    } catch (caught) {
      if (this.#shortcoming === undefined) throw interfaceError(action, caught);
    }
  }

  /** The configured cluster networks, else the other nodes' subnets. */
  #cluster(): readonly Cidr[] {
    const { clusterSubnets, peers } = this.#options;
    return clusterSubnets ?? [...(peers.current?.values() ?? [])].flatMap(({ subnets }) => subnets);
  }
}
