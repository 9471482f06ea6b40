import { isWindows } from "../../shared/os/platform.ts";
import {
  boolean,
  defaulted,
  type Findings,
  type Infer,
  integer,
  list,
  object,
  oneOf,
  optional,
  section,
  textThat,
} from "../../shared/schema/mod.ts";
import { parseAddress as parseSwitchAddress } from "../protocols/openflow/mod.ts";
import { parseAddress as parseDatabaseAddress } from "../protocols/ovsdb/mod.ts";
import { encryptionKeys } from "./encryption-config.ts";
import { checkFamilies } from "./nodes-config.ts";
import { block, deviceName, nodeAddress, parseBlock, path } from "./values.ts";

/** How packets reach other nodes (`docs/overlay.md`). */
export const trafficModes = ["encap", "noEncap", "hybrid", "networkPolicyOnly"] as const;
export type TrafficMode = (typeof trafficModes)[number];

export const tunnelTypes = ["geneve", "vxlan", "gre", "stt"] as const;
export type TunnelType = (typeof tunnelTypes)[number];

/** Who forwards: the kernel's module (on Windows its extension), or ovs-vswitchd itself. */
export const switchKinds = ["system", "netdev"] as const;
export type SwitchKind = (typeof switchKinds)[number];

export interface TunnelOptions {
  readonly type: TunnelType;
  /** Name of the port on the bridge. */
  readonly name: string;
  /** UDP or TCP port of the other end; absent: the protocol's own. */
  readonly port?: number;
  /** Packets carry a checksum of the outer header. */
  readonly checksum: boolean;
}

const defaultDatabase = isWindows
  ? "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchdb.sock"
  : "unix:/run/openvswitch/db.sock";

/** Kubernetes' default. */
export const defaultServiceCidr = "10.96.0.0/16";

const connection = (parse: (text: string) => unknown) =>
  textThat('"unix:/PATH", "tcp:ADDRESS:PORT" or a named pipe of Windows', (given) => {
    try {
      parse(given);
      return true;
    } catch {
      return false;
    }
  });

const serviceBlock = block("10.96.0.0/16");

const servicesSchema = object({
  file: optional(path, "a file of [services](#services)", "none"),
  cidrs: defaulted(
    list(serviceBlock, 0, 2),
    [parseBlock(defaultServiceCidr)].filter((cidr) => cidr !== undefined),
    "where the services' addresses are from",
    `\`${defaultServiceCidr}\``,
  ),
});

/** `ovs`. */
export const ovsSchema = object({
  database: defaulted(
    connection(parseDatabaseAddress),
    defaultDatabase,
    "where the database of Open vSwitch listens: `unix:/PATH`, `tcp:ADDRESS:PORT`, or a named pipe of Windows",
    "`unix:/run/openvswitch/db.sock`; on Windows its named pipe",
  ),
  management: optional(
    connection((given) => parseSwitchAddress(given, isWindows)),
    "where the bridge listens for OpenFlow",
    "`BRIDGE.mgmt` beside the database's socket",
  ),
  datapath: defaulted(oneOf(switchKinds), "system", "who forwards: the kernel's module, or ovs-vswitchd itself"),
  mode: defaulted(oneOf(trafficModes), "encap", "how pods reach those of [other nodes](overlay.md)"),
  tunnel: defaulted(oneOf(tunnelTypes), "geneve", "the tunnel's protocol"),
  tunnelPort: optional(integer(1, 65_535), "the other end's port", "the protocol's own"),
  tunnelName: defaulted(deviceName, "pipette-tun0", "name of the tunnel's port"),
  tunnelChecksum: defaulted(boolean, false, "whether the tunnel's outer header has a checksum"),
  gateway: defaulted(deviceName, "pipette-gw0", "name of the port that is the pods' gateway"),
  uplink: optional(
    deviceName,
    "the node's interface that is to be a port of the bridge, which then has its addresses",
    "none",
  ),
  nodeAddresses: defaulted(
    list(nodeAddress, 1, 2),
    [],
    "the node's own, one per family",
    "those that the node registers with",
  ),
  services: section(servicesSchema, "services that the switch balances"),
  tenants: defaulted(
    oneOf(["flat", "multitenant", "networkpolicy"]),
    "flat",
    "what keeps pods of different namespaces apart: nothing, VNIDs (with mode `encap` only), or network policies (with the section `policies`)",
  ),
  clusterSubnets: optional(
    list(serviceBlock, 0, 64),
    "where pods go under their own addresses",
    "the registry's networks, else the subnets of the other nodes",
  ),
  ...encryptionKeys,
});

export type WrittenOvs = Infer<typeof ovsSchema>;

/** Open vSwitch, as it carries the pods of many nodes. */
export interface OvsConfig
  extends Omit<WrittenOvs, "management" | "tunnel" | "tunnelName" | "tunnelPort" | "tunnelChecksum" | "tenants"> {
  readonly management: string;
  readonly tunnel: TunnelOptions;
  readonly multitenant: boolean;
}

/** @param bridge of the network */
export function toOvs(written: WrittenOvs, bridge: string): OvsConfig {
  const { management, tunnel, tunnelName, tunnelPort, tunnelChecksum, tenants, ...others } = written;
  return {
    ...others,
    management: management ?? managementBeside(written.database, bridge) ?? "",
    tunnel: {
      type: tunnel,
      name: tunnelName,
      checksum: tunnelChecksum,
      ...(tunnelPort === undefined ? {} : { port: tunnelPort }),
    },
    multitenant: tenants === "multitenant",
  };
}

/** ovs-vswitchd puts the bridge's socket into the directory where the database's is; `undefined` where that has none. */
function managementBeside(database: string, bridge: string): string | undefined {
  const beside = /^(?!tcp:)(?:pipe:)?(.*)db\.sock$/.exec(database)?.[1];
  if (beside === undefined) return undefined;
  return /^(unix:|\\\\)/.test(beside) ? `${beside}${bridge}.mgmt` : `unix:${beside}${bridge}.mgmt`;
}

/** Finds contradictions between keys. */
export function checkOvs(ovs: WrittenOvs, bridge: string, findings: Findings): void {
  const { database, management, nodeAddresses, services, tenants, mode } = ovs;
  if (management === undefined && managementBeside(database, bridge) === undefined)
    findings.add(["ovs", "database"], `"${database}" without "management", wanted both where no path tells the other`);
  checkFamilies(["ovs", "nodeAddresses"], nodeAddresses, findings);
  checkFamilies(["ovs", "services", "cidrs"], services.cidrs, findings);
  if (tenants === "multitenant" && mode !== "encap")
    findings.add(
      ["ovs", "tenants"],
      `"multitenant" with mode "${mode}", wanted "encap": the tunnel carries whose a packet is`,
    );
  const taken = new Set([bridge]);
  const names = {
    gateway: ovs.gateway,
    tunnelName: ovs.tunnelName,
    uplink: ovs.uplink,
    "wireguard.device": ovs.wireguard.device,
  };
  for (const [key, name] of Object.entries(names)) {
    if (name === undefined) continue;
    if (taken.has(name))
      findings.add(["ovs", ...key.split(".")], `"${name}" for the second time, wanted a name for each port`);
    taken.add(name);
  }
}
