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
  | "logger"
>;

/**
 * What the node's kernel does with pods' packets: hides them behind the node on their way to the world outside, and from
 * no pod where projects are kept apart, and drops what would lead them astray or is for a pod that there is not. Where
 * the cluster ends changes with its nodes.
 */
export class Masquerade implements AsyncDisposable {
  readonly #options: Options;
  readonly #reconciling: ReconcileLoop;
  /** Absent where the node has no subnets of its own. */
  readonly #present: PresentPods | undefined;
  #following: Disposable | undefined;
  #installed: string | undefined;
  #network: ForwardedNetwork | undefined;
  /** What pods are not kept from, where the node has no rules. */
  #shortcoming: string | undefined;

  /** @param filters socket for packet filters, which lives as long */
  constructor(options: Options, filters: NetlinkSocket) {
    this.#options = options;
    const { gateway: bridge, podSubnets: subnets } = options;
    this.#present = subnets.length === 0 ? undefined : new PresentPods(filters, { bridge, subnets });
    this.#reconciling = new ReconcileLoop({
      what: "the way out of the node",
      reconcile: () => this.#install(),
      logger: options.logger,
    });
  }

  /** Before `start`: pods that stand already. */
  restore(pods: Iterable<Pick<PodPort, "owner" | "ips">>): void {
    this.#present?.restore(pods);
  }

  /** @throws {CniError} 102 with what `nft` or the kernel said */
  async start(): Promise<void> {
    // Whoever starts again wants what somebody has taken away.
    this.#installed = undefined;
    await this.#reconciling.run();
    this.#following ??= this.#options.peers.subscribe(() => this.#reconciling.trigger());
  }

  /** Before the pod is connected. @throws {CniError} 102 */
  admit(pod: Pick<PodPort, "owner" | "ips">): void {
    this.#orUnguarded("tell the node of a pod's addresses", () => this.#present?.admit(pod));
  }

  /** Once the pod is disconnected. */
  dismiss(owner: Owner): void {
    try {
      this.#orUnguarded("forget a pod's addresses", () => this.#present?.dismiss(owner));
    } catch (caught) {
      // The node asks for them until the rules are installed again; the pod is gone all the same.
      this.#options.logger.error(CniError.from(caught).message);
    }
  }

  /** What somebody has taken of the rules that stood; `start` puts it back. */
  missing(kernel: Kernel): readonly string[] {
    if (this.#installed === undefined || this.#network === undefined || this.#shortcoming !== undefined) return [];
    return [...missingPacketRules(kernel, [this.#network]), ...(this.#present?.missing() ?? [])];
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
    const { gateway, podSubnets: subnets, mode, services, serviceCidrs } = this.#options;
    const tunnel = mode === "encap" || mode === "hybrid" ? { tunnel: packetsOf(this.#options.tunnel) } : {};
    // Else that is the other plugin's.
    const masquerade = this.#options.masquerade && mode !== "networkPolicyOnly";
    const exempt = this.#cluster();
    const text = exempt.map(formatCidr).join();
    if (text === this.#installed) return undefined;
    // The node itself is behind the virtual host where a service sends it to a host outside.
    const nodeLocal = services === undefined ? [] : virtualHosts(serviceCidrs);
    const multitenant = this.#options.tenants !== undefined;
    this.#network = { bridge: gateway, subnets, masquerade, exempt, nodeLocal, multitenant, ...tunnel };
    this.#shortcoming = await installPacketRules([this.#network]);
    // They have gone with the table. Until they are back the node asks for anybody; pods are not cut off.
    this.#orUnguarded("install the packet rules about absent pods", () => this.#present?.install());
    this.#installed = text;
    return undefined;
  }

  /** Where pods have a network without packet rules, they have it without these too. */
  #orUnguarded(action: string, work: () => void): void {
    try {
      work();
    } catch (caught) {
      if (this.#shortcoming === undefined) throw interfaceError(action, caught);
    }
  }

  /** As it was configured, else where the others' pods are. */
  #cluster(): readonly Cidr[] {
    const { clusterSubnets, peers } = this.#options;
    return clusterSubnets ?? [...(peers.current?.values() ?? [])].flatMap(({ subnets }) => subnets);
  }
}
