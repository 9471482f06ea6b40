import type { Cidr } from "../../../shared/ip.ts";
import { formatCidr } from "../../../shared/ip.ts";
import type { Kernel } from "../../netlink/mod.ts";
import { type ForwardedNetwork, installPacketRules, missingPacketRules } from "../host/packet-rules.ts";
import type { OvsDataPathOptions } from "./options.ts";
import { packetsOf } from "./pipeline/mod.ts";
import { virtualHosts } from "./services/service-routes.ts";
import { Settler } from "./settler.ts";

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
  | "logger"
>;

/**
 * What the node's kernel does with pods' packets: hides them behind the node on their way to the world outside, and drops
 * what would lead them astray. Where the cluster ends changes with its nodes.
 */
export class Outward implements AsyncDisposable {
  readonly #options: Options;
  readonly #settler: Settler;
  #following: Disposable | undefined;
  #installed: string | undefined;
  #network: ForwardedNetwork | undefined;
  /** What pods are not kept from, where the node has no rules. */
  #shortcoming: string | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#settler = new Settler(() => this.#install(), options.logger);
  }

  /** @throws {CniError} 102 with what `nft` said */
  async start(): Promise<void> {
    // Whoever starts again wants what somebody has taken away.
    this.#installed = undefined;
    await this.#settler.run();
    this.#following ??= this.#options.peers.subscribe(() => this.#settler.trigger());
  }

  /** What somebody has taken of the rules that stood; `start` puts it back. */
  missing(kernel: Kernel): readonly string[] {
    if (this.#installed === undefined || this.#network === undefined || this.#shortcoming !== undefined) return [];
    return missingPacketRules(kernel, [this.#network]);
  }

  shortcomings(): readonly string[] {
    return this.#shortcoming === undefined ? [] : [this.#shortcoming];
  }

  /** The rules stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#following?.[Symbol.dispose]();
    await this.#settler[Symbol.asyncDispose]();
  }

  async #install(): Promise<void> {
    const { gateway, podSubnets: subnets, mode, services, serviceCidrs } = this.#options;
    const tunnel = mode === "encap" || mode === "hybrid" ? { tunnel: packetsOf(this.#options.tunnel) } : {};
    // Else that is the other plugin's.
    const masquerade = this.#options.masquerade && mode !== "networkPolicyOnly";
    const exempt = this.#cluster();
    const text = exempt.map(formatCidr).join();
    if (text === this.#installed) return;
    // The node itself is behind the virtual host where a service sends it to a host outside.
    const hidden = services === undefined ? [] : virtualHosts(serviceCidrs);
    this.#network = { bridge: gateway, subnets, masquerade, exempt, hidden, ...tunnel };
    this.#shortcoming = await installPacketRules([this.#network]);
    this.#installed = text;
  }

  /** As it was configured, else where the others' pods are. */
  #cluster(): readonly Cidr[] {
    const { clusterSubnets, peers } = this.#options;
    return clusterSubnets ?? [...(peers.current?.values() ?? [])].flatMap(({ subnets }) => subnets);
  }
}
