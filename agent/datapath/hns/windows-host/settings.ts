import type { Cidr, Ip } from "../../../../shared/net/ip.ts";
import type { HostChange } from "../../host-change.ts";

/** The wanted state of the node, from the configuration. */
export interface HostSettings {
  /** Where the record of what was changed is kept. */
  readonly dataDir: string;
  /** Of the adapter that the HNS network is made on. */
  readonly nodeAddress: Ip;
  readonly podSubnet: Cidr;
  readonly gateway: Ip;
  /** Alias of the interface that pods' packets pass through; as a rule the same as `bridgeName`. */
  readonly gatewayInterface: string;
  /** The wanted name of the switch's adapter on the host; empty: keep Windows' name. */
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
  /** The next hop's MAC, for a next hop that does not answer ARP. */
  readonly nextHopMac?: string;
}

/** An object that Windows refuses or that somebody else has, in a step that continues without it. */
export interface RefusedThing {
  readonly thing: Readonly<Record<string, string>>;
  readonly why: string;
}

export interface HostReport {
  readonly changes: readonly HostChange[];
  /** Absent where nothing can be. */
  readonly refused?: readonly RefusedThing[];
}
