import type { CniVersion } from "../../shared/cni/versions.ts";
import type { LogLevel } from "../../shared/log.ts";
import type { Cidr, Ip } from "../../shared/net/ip.ts";
import type { ClusterNetwork } from "./cluster-network.ts";
import type { SwitchKind, TrafficMode, TunnelOptions } from "./overlay-options.ts";

/** `agent.yaml`, checked and with its defaults; what each key means stands in `conf/agent.yaml`. */
export interface AgentConfig {
  readonly socket: string;
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly cni: ConflistConfig;
  /** How pods are wired: the folder of that name below `agent/datapath`. */
  readonly dataPath: DataPathName;
  readonly networks: readonly NetworkConfig[];
  /** Always there where `dataPath` is `ovs`. */
  readonly ovs?: OvsConfig;
  /** Where the nodes of the cluster come from; absent: this node knows of no other. */
  readonly nodes?: NodesConfig;
  readonly callTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly janitorIntervalMs: number;
  readonly cooldownMs: number;
  /** Of one call of HNS. */
  readonly hnsTimeoutMs: number;
}

/** The CNI network configuration that the agent writes for the runtime, for the first network. */
export interface ConflistConfig {
  readonly confDir: string;
  /** Empty: no file is written. */
  readonly fileName: string;
  /** What every runtime reads. */
  readonly cniVersion: CniVersion;
  /**
   * What newer runtimes choose from (specification 1.1.0, `cniVersions`); empty: the key is left out; absent: from
   * `cniVersion` on, what all plugins of the list know (`versionsOf`).
   */
  readonly cniVersions?: readonly CniVersion[];
  /** Whether the list tells runtimes not to ask for GC (specification 1.1.0, `disableGC`): several of them share it. */
  readonly disableGC: boolean;
  /** Chained after ours, as they are; absent: the usual ones, as far as they are there (`chainOf`). */
  readonly plugins?: readonly Readonly<Record<string, unknown>>[];
}

export const dataPathNames = ["bridge", "ovs", "hns"] as const;
export type DataPathName = (typeof dataPathNames)[number];

export interface NetworkConfig {
  readonly name: string;
  /**
   * One or two blocks, one per family; the first address of each is the gateway. Empty in a file that leaves them to the
   * registry of `nodes`: they are there once the node has joined.
   */
  readonly subnets: readonly Cidr[];
  readonly bridge: string;
  /** Bytes. */
  readonly mtu?: number;
  readonly hairpin: boolean;
  readonly masquerade: boolean;
  /** Addresses and blocks that no pod gets. */
  readonly exclude: readonly string[];
  /** A pod gets its last addresses back while they are free. */
  readonly sticky: boolean;
  /** Always there where `dataPath` is `hns`. */
  readonly hns?: HnsConfig;
}

/** This node among the others. */
export interface NodesConfig {
  readonly name: string;
  /** Where the others reach it, one per family at most; empty: found by looking at its interfaces. */
  readonly addresses: readonly Ip[];
  /** Of the interface that holds these addresses; absent: found by looking. */
  readonly mac?: string;
  readonly registry: RegistryConfig;
}

/** One implementation of `NodeRegistry` each, in the folder of that name below `agent/cluster`. */
export type RegistryConfig = StaticRegistryConfig | EtcdRegistryConfig | KubernetesRegistryConfig;

/** A file that a person, or their tooling, writes. */
export interface StaticRegistryConfig {
  readonly type: "static";
  readonly file: string;
}

export interface EtcdRegistryConfig {
  readonly type: "etcd";
  /** `http://HOST:PORT` or `https://HOST:PORT`, of one cluster, all of one scheme. */
  readonly endpoints: readonly string[];
  /** Before every key; begins with a slash and ends without one. */
  readonly prefix: string;
  /** Files (PEM). `cert` and `key` come together. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** What the nodes' subnets are cut from, where the registry is new; filled in order. */
  readonly networks: readonly ClusterNetwork[];
}

/** The API server's Nodes. Every key that is absent is what a pod finds about its own cluster. */
export interface KubernetesRegistryConfig {
  readonly type: "kubernetes";
  /** `https://HOST:PORT` */
  readonly server?: string;
  /** Files. */
  readonly token?: string;
  readonly ca?: string;
}

/** What a network is for the Host Networking Service. */
export interface HnsConfig {
  /** Name of the HNS network. */
  readonly network: string;
  readonly type: "Transparent" | "L2Bridge" | "Overlay";
  /** The node's own address, which tells the adapter that the network is made on. IPv4. */
  readonly nodeAddress: Ip;
  /** Name of that adapter where the address is not to tell it. */
  readonly adapter?: string;
  /** Of an overlay, always there with one. */
  readonly vsid?: number;
  /** Name of the NetNat for the pods' subnet; empty: none. */
  readonly natName: string;
  readonly ovsExtension: boolean;
  /** Every endpoint gets the policy OutBoundNAT with these blocks excepted; absent: it gets none. */
  readonly outboundNat?: { readonly exceptions: readonly string[] };
  /** Further endpoint policies, passed on as they are. */
  readonly policies: readonly Readonly<Record<string, unknown>>[];
  readonly peers: readonly HnsPeer[];
}

/** Another node: where its pods are, and by way of whom. */
export interface HnsPeer {
  readonly podSubnet: Cidr;
  readonly gateway: Ip;
}

/** Open vSwitch, as it carries the pods of many nodes. */
export interface OvsConfig {
  /** Address of the database, and of the bridge's own socket. */
  readonly database: string;
  readonly management: string;
  readonly datapath: SwitchKind;
  readonly mode: TrafficMode;
  readonly tunnel: TunnelOptions;
  /** Name of the port that is the pods' gateway. */
  readonly gateway: string;
  /** The node's own interface, where it is to be a port of the bridge. */
  readonly uplink?: string;
  /** Empty: those that the node registers with. */
  readonly nodeAddresses: readonly Ip[];
  readonly services: { readonly file?: string; readonly cidrs: readonly Cidr[] };
  readonly multitenant: boolean;
  /** Where pods go under their own address; absent: the registry's networks, else the subnets of the other nodes. */
  readonly clusterSubnets?: readonly Cidr[];
}
