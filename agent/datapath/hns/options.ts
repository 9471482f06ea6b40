import type { Owner } from "../../../shared/cni/types.ts";
import type { Logger } from "../../../shared/log.ts";
import type { Cidr, Ip } from "../../../shared/net/ip.ts";
import type { HnsConfig } from "../../config/agent-config.ts";
import type { Hcn } from "../../protocols/hcn/mod.ts";

/** How services are balanced: of section `services` of the configuration. */
export interface HnsServiceSettings {
  /** `false`: cluster IPs alone. */
  readonly proxyAll: boolean;
  /** Blocks of those of the node's addresses at which node ports answer; none: at all of them. */
  readonly nodePortAddresses: readonly Cidr[];
}

/** One network on this node, on an HNS network of its own. */
export interface HnsNetwork {
  /** `name` of the network configuration. */
  readonly name: string;
  /** IPv4; its first address is the gateway. */
  readonly subnet: Cidr;
  /** What the node's virtual adapter on the network is called. */
  readonly bridge: string;
  /** Bytes, of the gateway interface. */
  readonly mtu?: number;
  readonly hns: HnsConfig;
  /** Name of the pods' gateway among the ports of Open vSwitch; absent: HNS itself forwards. */
  readonly overlayGateway?: string;
}

/** The card that an HNS network is made on. */
export interface NodeAdapter {
  readonly alias: string;
  /** `00-15-5D-01-02-03`. */
  readonly mac: string;
  /** Of the node's own address on it. */
  readonly prefixLength: number;
}

/** How the node itself stands in the network. */
export interface NodeInterface {
  /** `00-15-5D-01-02-03`. */
  readonly mac: string;
  /** Beside the IPv4 address, one that others reach; absent: it has none. */
  readonly ipv6?: Ip;
}

/** The node around an HNS network: cards, names, routes, NetNat. Each method can be repeated. */
export interface NodeSide {
  /** Before a network is made: finds its card, and keeps in mind what the network will take from it. */
  prepare(network: HnsNetwork): Promise<NodeAdapter>;
  /** Once the network is there. */
  setUp(network: HnsNetwork): Promise<void>;
  /** After a network that could not be finished has been deleted. */
  handBack(network: HnsNetwork): Promise<void>;
  /** The adapter that has the node's own address now. @throws {CniError} 102 */
  nodeInterface(network: HnsNetwork): Promise<NodeInterface>;
}

export interface HnsDataPathOptions {
  readonly networks: readonly HnsNetwork[];
  /** Where the record of our endpoints lies. */
  readonly dataDir: string;
  /** Disposed with the data path. */
  readonly hcn: Hcn;
  readonly node: NodeSide;
  readonly logger: Logger;
  /** How services are balanced; absent: none are, and what an earlier agent has left of them goes. */
  readonly services?: HnsServiceSettings | undefined;
  /** Hears of endpoints of ours that came to be after their owner had left; `detach` takes them away. */
  needsCleanup(owner: Owner): void;
  /** Between two listings of what HNS has; for tests. */
  readonly listingMs?: number;
  /** Between two listings of HNS' load balancers; for tests. */
  readonly servicesListingMs?: number;
  /** How long a start waits for a service that is away; for tests. */
  readonly startPatienceMs?: number;
}
