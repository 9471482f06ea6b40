import type { Cidr, Ip } from "../net/ip.ts";

/**
 * A CNI result as Pipette keeps it: the richest shape (specification 1.1.0, "ADD Success").
 * `result.ts` writes it in the shape that the configuration's version asks for.
 */
export interface CniResult {
  readonly interfaces: readonly CniInterface[];
  readonly ips: readonly CniIp[];
  readonly routes: readonly CniRoute[];
  readonly dns: CniDns;
}

export interface CniInterface {
  readonly name: string;
  readonly mac?: string;
  /** Bytes. From 1.1.0 on. */
  readonly mtu?: number;
  /** Network namespace path of an interface inside a sandbox; absent on the host. */
  readonly sandbox?: string;
  readonly socketPath?: string;
  readonly pciID?: string;
}

export interface CniIp {
  readonly address: Cidr;
  readonly gateway?: Ip;
  /** Index into `interfaces`; absent in an IPAM plugin's result. */
  readonly interface?: number;
}

export interface CniRoute {
  readonly dst: Cidr;
  readonly gw?: Ip;
  readonly mtu?: number;
  readonly advmss?: number;
  readonly priority?: number;
  readonly table?: number;
  readonly scope?: number;
}

export interface CniDns {
  readonly nameservers?: readonly string[];
  readonly domain?: string;
  readonly search?: readonly string[];
  readonly options?: readonly string[];
}

/** One attachment: unique in its network by sandbox and interface name (specification 1.1.0, "Lifecycle & Ordering"). */
export interface Owner {
  readonly network: string;
  readonly sandboxId: string;
  readonly ifname: string;
}

/** An attachment of a network that the context names, as runtimes list it for GC and CHECK. */
export interface Attachment {
  readonly containerId: string;
  readonly ifname: string;
}

/** The pod of the sandbox, as far as CNI_ARGS names it (`K8S_POD_NAMESPACE`, `K8S_POD_NAME`, `K8S_POD_UID`). */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}
