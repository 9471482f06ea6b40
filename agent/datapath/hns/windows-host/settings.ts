import type { Cidr, Ip } from "../../../../shared/net/ip.ts";
import type { HostChange } from "../../host-change.ts";

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
  /** Where the gateway interface is an internal port of Open vSwitch's; absent: it is the switch's own adapter. */
  readonly gatewayPort?: GatewayPort;
  /** Bytes, of the gateway interface. */
  readonly mtu?: number;
  /** The other nodes: each one's pods, and the next hop to them. */
  readonly peers: readonly { readonly podSubnet: Cidr; readonly gateway: Ip }[];
  /** Routes that come and go while the agent runs, beside those to `peers`; absent: there are none yet. */
  readonly routes?: readonly SettingsRoute[];
  readonly ovsExtension: boolean;
  /** Name of the HNS network, which its switch bears too. */
  readonly hnsNetwork: string;
}

export interface GatewayPort {
  /** As `02:00:5e:10:00:01`. */
  readonly mac: string;
  readonly address: Cidr;
}

export interface SettingsRoute {
  readonly destination: Cidr;
  readonly nextHop: Ip;
  /** Of the interface. */
  readonly alias: string;
  /** Where nobody answers for the next hop, which the interface then reaches directly. */
  readonly nextHopMac?: string;
}

/** A thing that Windows does not take, or somebody else has: of a step that goes on without it. */
export interface RefusedThing {
  readonly thing: Readonly<Record<string, string>>;
  readonly why: string;
}

export interface HostReport {
  readonly changes: readonly HostChange[];
  /** Absent where nothing can be. */
  readonly refused?: readonly RefusedThing[];
}
