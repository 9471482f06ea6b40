import type { Live } from "../../../shared/async/live-value.ts";
import type { Owner, Pod } from "../../../shared/cni/types.ts";
import type { Logger } from "../../../shared/log.ts";
import type { Cidr } from "../../../shared/net/ip.ts";
import type { ClusterNode, TenantRegistry } from "../../cluster/node-registry.ts";
import type { SwitchKind, TrafficMode, TunnelOptions } from "../../config/overlay-options.ts";
import type { HostNetwork } from "./overlay-node.ts";
import type { ServiceSource } from "./services/service.ts";

/** What both systems' parts of the switch are made of. */
interface SwitchOptions {
  /** As `parseAddress` of `agent/protocols/ovsdb` takes it. */
  readonly database: string;
  /** Where the bridge listens for OpenFlow, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly bridge: string;
  readonly kind: SwitchKind;
  readonly mode: TrafficMode;
  readonly tunnel: TunnelOptions;
  /** Name of the internal port that is the pods' gateway. */
  readonly gateway: string;
  /** The node's own interface, to be a port of the bridge. */
  readonly uplink?: string;
  /** This node's name among its peers. */
  readonly nodeName: string;
  readonly podSubnets: readonly Cidr[];
  readonly peers: Live<ReadonlyMap<string, ClusterNode>>;
  /** Ends with the node that it is given to. */
  readonly services: ServiceSource | undefined;
  /** The node's route to services. */
  readonly serviceCidrs: readonly Cidr[];
  /** Keeps projects apart; `undefined`: all pods reach each other. */
  readonly tenants: TenantRegistry | undefined;
  readonly logger: Logger;
}

/** Of the part that knows nothing of pods' interfaces, the same on both systems. */
export interface OvsNodeOptions extends SwitchOptions {
  /** With the length of their network's prefix; one per family at most. */
  readonly nodeAddresses: readonly Cidr[];
  /** Bytes, of the gateway and of pods. */
  readonly mtu: number;
  readonly host: HostNetwork;
}

/** Of the whole data path on Linux. */
export interface OvsDataPathOptions extends SwitchOptions {
  /** `name` of the network configuration. */
  readonly network: string;
  /** Where the data path may note what it could not find again. */
  readonly dataDir: string;
  /** With the length of their network's prefix; one per family at most. */
  readonly nodeAddresses: readonly Cidr[];
  /** Bytes; absent: what the transport interface leaves after the tunnel's headers. */
  readonly mtu?: number;
  readonly masquerade: boolean;
  /** Which pod an attachment is of, where the database of the switch no longer says so. */
  podOf(owner: Owner): Pod | undefined;
  /** Where pods go under their own address; `undefined`: to the peers' subnets. */
  readonly clusterSubnets: readonly Cidr[] | undefined;
}
