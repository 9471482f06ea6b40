import type { Cidr, Ip } from "../../../../shared/net/ip.ts";
import type { TrafficMode, TunnelType } from "../../../config/ovs-config.ts";

export interface Tunnel {
  readonly ofport: number;
  readonly type: TunnelType;
  /** UDP or TCP port of the other end; absent: the protocol's own. */
  readonly port?: number;
}

/** How the node is met by those who ask for services. */
export interface NodePorts {
  /** The node's own addresses. */
  readonly addresses: readonly Ip[];
  /** The node's kernel refuses what nobody is to answer, also for pods, whose packets are given to it for that. */
  readonly refuses: boolean;
}

/** The parameters of all flows of one node. */
export interface PipelineContext {
  readonly mode: TrafficMode;
  readonly gateway: { readonly ofport: number; readonly mac: string; readonly addresses: readonly Ip[] };
  /** Absent where the mode has no tunnel. */
  readonly tunnel?: Tunnel;
  /** Each node has a tunnel of its own too, and nothing is believed that comes out of the one for all. */
  readonly tunnelPerPeer?: boolean;
  /** Packets for other nodes' pods go to the node's kernel, which encrypts them: there is no tunnel then. */
  readonly kernelEncrypts?: boolean;
  /** The node's own interface as a port of the bridge, whose LOCAL port then holds the node's addresses. */
  readonly uplink?: { readonly ofport: number; readonly mac: string };
  /** Addresses of the node itself, one per family at most, with the length of their network's prefix. */
  readonly nodeAddresses: readonly Cidr[];
  /** Of the node's pods; none in `networkPolicyOnly`. */
  readonly podSubnets: readonly Cidr[];
  /** Where node ports answer; absent: the switch balances no services for the node and for others. */
  readonly nodePorts?: NodePorts;
  /** Addresses of services that the node's kernel translates, as with kube-proxy, and not the switch. */
  readonly kernelServices?: readonly Cidr[];
  /** `true`: connection tracking takes all SCTP between two addresses for one connection, whatever the ports. */
  readonly joinsSctp?: boolean;
  /** `true`: projects are isolated by their VNIDs. */
  readonly multitenant: boolean;
  /** `true`: the switch has meters, which limit how fast a pod opens connections. */
  readonly metered?: boolean;
}
