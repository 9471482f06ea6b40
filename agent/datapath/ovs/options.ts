import { networkInterfaces } from "node:os";
import { type Live, LiveValue } from "../../../shared/async/live-value.ts";
import type { Owner, Pod } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { bitsOf, type Cidr, type Ip, parseCidr, sameIp } from "../../../shared/net/ip.ts";
import { clusterNetworks } from "../../cluster/cluster.ts";
import type { ClusterNode, TenantRegistry } from "../../cluster/node-registry.ts";
import type { EncryptionKind, EspKind } from "../../config/encryption-config.ts";
import { nameOf } from "../../config/nodes-config.ts";
import type { SwitchKind, TrafficMode, TunnelOptions } from "../../config/ovs-config.ts";
import type { DataPathNeeds } from "../datapath.ts";
import type { HostNetwork } from "./overlay-node.ts";
import type { OvsPolicies } from "./policies/ovs-policies.ts";
import { OvsServices } from "./services/ovs-services.ts";

/** Options of the switch on both systems. */
interface SwitchOptions {
  /** As `parseAddress` of `agent/protocols/ovsdb` takes it. */
  readonly database: string;
  /** Where the bridge listens for OpenFlow, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly bridge: string;
  readonly kind: SwitchKind;
  readonly mode: TrafficMode;
  readonly tunnel: TunnelOptions;
  /** Of packets to other nodes' pods. */
  readonly encryption: EncryptionKind;
  /** For `encryption: ipsec`. */
  readonly ipsec: IpsecOptions;
  /** What the node is known by to the others; absent: IPsec is not what encrypts. */
  readonly credentials?: IpsecCredentials | undefined;
  /** Name of the internal port that is the pods' gateway. */
  readonly gateway: string;
  /** The node's own interface, to be a port of the bridge. */
  readonly uplink?: string;
  /** This node's name among its peers. */
  readonly nodeName: string;
  readonly podSubnets: readonly Cidr[];
  readonly peers: Live<ReadonlyMap<string, ClusterNode>>;
  /** Where cluster IPs are from. */
  readonly serviceCidrs: readonly Cidr[];
  /** Keeps projects apart; `undefined`: all pods reach each other. */
  readonly tenants: TenantRegistry | undefined;
  readonly logger: Logger;
}

/** Options of the system-independent part, which does not deal with pods' interfaces. */
export interface OvsNodeOptions extends SwitchOptions {
  /** With the length of their network's prefix; one per family at most. */
  readonly nodeAddresses: readonly Cidr[];
  /** Bytes, of the gateway and of pods. */
  readonly mtu: number;
  readonly host: HostNetwork;
  readonly policies: OvsPolicies;
  /** Services that the switch balances; `undefined`: the node's kernel does. */
  readonly services: OvsServices | undefined;
}

/** Of the whole data path on Linux. */
export interface OvsDataPathOptions extends SwitchOptions {
  /** `name` of the network configuration. */
  readonly network: string;
  /** Where the data path stores what it could not read back from the system. */
  readonly dataDir: string;
  /** With the length of their network's prefix; one per family at most. */
  readonly nodeAddresses: readonly Cidr[];
  /** Bytes; absent: what the transport interface leaves after the tunnel's headers. */
  readonly mtu?: number;
  readonly masquerade: boolean;
  /** Which pod an attachment is of, where the database of the switch no longer says so. */
  podOf(owner: Owner): Pod | undefined;
  /** The networks that pods reach under their own address; `undefined`: the peers' subnets. */
  readonly clusterSubnets: readonly Cidr[] | undefined;
  /** Those and all that the registry leases from: in one of these every pod is, as far as anybody says so. */
  readonly podNetworks?: readonly Cidr[];
  /** `undefined`: the switch balances no services. */
  readonly services: BalancedServices | undefined;
  readonly wireguard: WireGuardOptions;
  /** Tells the registry again what this node says of itself; absent: the node is alone. */
  announce?(): Promise<void>;
  /** People write nodes' keys into the registry: this node cannot take another one by itself. */
  readonly keysByHand?: boolean;
}

/** As the configuration has it. */
export interface WireGuardOptions {
  readonly port: number;
  readonly device: string;
  /** Absent: the key stays. */
  readonly rotateHours?: number | undefined;
}

/** As the configuration has it. */
export interface IpsecOptions {
  readonly esp: EspKind;
  readonly forceUdp: boolean;
  /** Where strongSwan's plugin error-notify listens. */
  readonly charon: string;
}

/** What a node shows the others by IPsec, before anything is encrypted. */
export type IpsecCredentials =
  | { readonly kind: "psk"; readonly secret: string }
  | { readonly kind: "certificate"; readonly source: CertificateSource };

/** Where a node's certificate comes from, which may come later and change. */
export interface CertificateSource {
  /** `undefined`: there is none yet, or none that is valid. */
  current(): CertificateFiles | undefined;
  /** Called with others that count from now on; `undefined`: there is none any more, as where it has ended. */
  onChange: (files: CertificateFiles | undefined) => void;
  /** Why there is none, or what is wrong with it, in a sentence. */
  problem(): string | undefined;
}

/** Paths of files in PEM. The subject's CN is the node's name. */
export interface CertificateFiles {
  readonly certificate: string;
  readonly privateKey: string;
  readonly caCertificate: string;
}

/** Which services the switch balances. */
export interface BalancedServices {
  /** `false`: pods' cluster IPs alone. */
  readonly proxyAll: boolean;
  /** Blocks of the node's addresses at which node ports answer; none: all of them. */
  readonly nodePortAddresses: readonly Cidr[];
}

/** What the data path is made with, as the configuration and the cluster have it. */
export function ovsOptionsFromConfig(
  { config, cluster, podOf }: DataPathNeeds,
  logger: Logger,
  credentials?: IpsecCredentials,
): OvsDataPathOptions {
  const { ovs, networks } = config;
  const [network] = networks;
  if (ovs === undefined || network === undefined)
    throw new CniError(CniCode.invalidConfig, 'Cannot make the data path: the configuration has no section "ovs"');
  const { services, multitenant, nodeAddresses, datapath: kind, clusterSubnets, ...others } = ovs;
  if (multitenant && cluster?.tenants === undefined)
    throw new CniError(
      CniCode.invalidConfig,
      'Cannot keep projects apart: "ovs.tenants" is "multitenant" and the registry keeps no VNIDs, wanted "nodes" with one that does',
    );
  return {
    ...others,
    kind,
    network: network.name,
    dataDir: config.dataDir,
    bridge: network.bridge,
    podSubnets: network.subnets,
    ...(network.mtu === undefined ? {} : { mtu: network.mtu }),
    masquerade: network.masquerade,
    nodeName: cluster?.self.name ?? nameOf(config.nodes ?? {}),
    nodeAddresses:
      nodeAddresses.length > 0 || cluster === undefined ? nodeAddresses.map(onLink) : cluster.linkAddresses,
    clusterSubnets: clusterSubnets ?? clusterNetworks(config),
    podNetworks: [...(clusterSubnets ?? []), ...(clusterNetworks(config) ?? [])],
    peers: cluster?.peers ?? new LiveValue(new Map()),
    services: config.services,
    serviceCidrs: config.services?.cidrs ?? services.cidrs,
    tenants: multitenant ? cluster?.tenants : undefined,
    keysByHand: config.nodes?.registry.type === "static",
    ...(cluster === undefined ? {} : { announce: () => cluster.announce() }),
    credentials,
    podOf,
    logger,
  };
}

/** What balances them. */
export const servicesOf = ({
  services,
  serviceCidrs: cidrs,
  management,
  logger,
}: Pick<OvsDataPathOptions, "services" | "serviceCidrs" | "management" | "logger">): OvsServices | undefined =>
  services === undefined ? undefined : new OvsServices({ ...services, cidrs, management, logger });

/** With the length of its network's prefix, as an interface of this node has it; else alone. */
function onLink(ip: Ip): Cidr {
  const all = Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ cidr }) => cidr ?? ""));
  return (
    all.map(parseCidr).find((cidr) => cidr !== undefined && sameIp(cidr.ip, ip)) ?? { ip, prefix: bitsOf(ip.family) }
  );
}
