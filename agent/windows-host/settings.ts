import type { Cidr, Ip } from "../../shared/ip.ts";

/** What the node shall be like, as the configuration says it. */
export interface HostSettings {
  /** Where the record of what was changed is kept. */
  readonly dataDir: string;
  /** Of the adapter that the HNS network is made on. */
  readonly nodeAddress: Ip;
  readonly podSubnet: Cidr;
  readonly gateway: Ip;
  /** Alias of the interface that pods' packets pass through; as a rule the same as `bridgeName`. */
  readonly gatewayInterface: string;
  /** What the switch's adapter on the host shall be called; empty: as Windows calls it. */
  readonly bridgeName: string;
  /** Of the NetNat for the pod subnet; empty: none. */
  readonly natName: string;
  /** Bytes, of the gateway interface. */
  readonly mtu?: number;
  /** The other nodes: each one's pods, and the next hop to them. */
  readonly peers: readonly { readonly podSubnet: Cidr; readonly gateway: Ip }[];
  readonly ovsExtension: boolean;
  /** Name of the HNS network, which its switch bears too. */
  readonly hnsNetwork: string;
}

/** What became of one thing on the node. */
export interface HostChange {
  readonly step: string;
  readonly what: string;
  readonly did: "was there" | "made" | "undone" | "was gone" | "failed";
  /** Where it failed: why. */
  readonly problem?: string;
}

export interface HostReport {
  readonly changes: readonly HostChange[];
}
