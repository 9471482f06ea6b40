import { deviceNameRule, wrongDeviceName } from "../../shared/cni/names.ts";
import { type Cidr, firstOf, type Ip, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { parseAddress as parseSwitchAddress } from "../protocols/openflow/mod.ts";
import { parseAddress as parseDatabaseAddress } from "../protocols/ovsdb/mod.ts";
import type { OvsConfig } from "./agent-config.ts";
import {
  type SwitchKind,
  switchKinds,
  type TrafficMode,
  type TunnelType,
  trafficModes,
  tunnelTypes,
} from "./overlay-options.ts";
import { nodeAddress, oneOf, path } from "./value-shapes.ts";
import type { Shape } from "./yaml-shape.ts";

/** As the `ovs` section stands in the file, its values of the right type each. */
export interface RawOvs {
  readonly database?: string;
  readonly management?: string;
  readonly datapath?: SwitchKind;
  readonly mode?: TrafficMode;
  readonly tunnel?: TunnelType;
  readonly tunnelPort?: number;
  readonly tunnelName?: string;
  readonly tunnelChecksum?: boolean;
  readonly gateway?: string;
  readonly uplink?: string;
  readonly nodeAddresses?: readonly string[];
  readonly services?: { readonly file?: string; readonly cidrs?: readonly string[] };
  readonly tenants?: "flat" | "multitenant";
  readonly clusterSubnets?: readonly string[];
}

const defaultGateway = "pipette-gw0";
const defaultTunnel = "pipette-tun0";

export const defaultServiceCidr = "10.96.0.0/16";

export const tenantModes = ["flat", "multitenant"] as const;

const defaultDatabase = isWindows
  ? "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchdb.sock"
  : "unix:/run/openvswitch/db.sock";

const ifname: Shape = {
  t: "string",
  wanted: deviceNameRule,
  wrong: wrongDeviceName,
};

const block: Shape = {
  t: "string",
  wanted: 'a network without host bits, such as "10.96.0.0/16"',
  wrong: (text) => {
    const cidr = parseCidr(text);
    return cidr !== undefined && sameIp(firstOf(cidr), cidr.ip) ? undefined : "none";
  },
};

const connection = (parse: (text: string) => unknown, wanted: string): Shape => ({
  t: "string",
  wanted,
  wrong: (text) => {
    try {
      parse(text);
      return undefined;
    } catch {
      return "none";
    }
  },
});

/** `ovs`. */
export const ovsShape: Shape = {
  t: "map",
  required: [],
  keys: {
    database: connection(parseDatabaseAddress, '"unix:/PATH", "tcp:ADDRESS:PORT" or a named pipe of Windows'),
    management: connection(
      (text) => parseSwitchAddress(text, isWindows),
      '"unix:/PATH", "tcp:ADDRESS:PORT" or a named pipe of Windows',
    ),
    datapath: oneOf(switchKinds),
    mode: oneOf(trafficModes),
    tunnel: oneOf(tunnelTypes),
    tunnelPort: { t: "integer", least: 1, most: 65_535 },
    tunnelName: ifname,
    tunnelChecksum: { t: "boolean" },
    gateway: ifname,
    uplink: ifname,
    nodeAddresses: { t: "list", of: nodeAddress, least: 1, most: 2 },
    services: {
      t: "map",
      required: [],
      keys: {
        file: path,
        cidrs: { t: "list", of: block, least: 0, most: 2 },
      },
    },
    tenants: oneOf(tenantModes),
    clusterSubnets: { t: "list", of: block, least: 0, most: 64 },
  },
};

/** With the defaults of `conf/agent.yaml`. @param bridge of the network */
export function toOvs(raw: RawOvs, bridge: string): OvsConfig {
  const database = raw.database ?? defaultDatabase;
  return {
    database,
    management: raw.management ?? managementBeside(database, bridge) ?? "",
    datapath: raw.datapath ?? "system",
    mode: raw.mode ?? "encap",
    tunnel: {
      type: raw.tunnel ?? "geneve",
      name: raw.tunnelName ?? defaultTunnel,
      checksum: raw.tunnelChecksum ?? false,
      ...(raw.tunnelPort === undefined ? {} : { port: raw.tunnelPort }),
    },
    gateway: raw.gateway ?? defaultGateway,
    ...(raw.uplink === undefined ? {} : { uplink: raw.uplink }),
    nodeAddresses: addressesOf(raw.nodeAddresses ?? []),
    services: {
      ...(raw.services?.file === undefined ? {} : { file: raw.services.file }),
      cidrs: blocksOf(raw.services?.cidrs ?? [defaultServiceCidr]),
    },
    multitenant: raw.tenants === "multitenant",
    ...(raw.clusterSubnets === undefined ? {} : { clusterSubnets: blocksOf(raw.clusterSubnets) }),
  };
}

/** ovs-vswitchd puts the bridge's socket into the directory where the database's is; `undefined` where that has none. */
function managementBeside(database: string, bridge: string): string | undefined {
  const beside = /^(?!tcp:)(?:pipe:)?(.*)db\.sock$/.exec(database)?.[1];
  if (beside === undefined) return undefined;
  return /^(unix:|\\\\)/.test(beside) ? `${beside}${bridge}.mgmt` : `unix:${beside}${bridge}.mgmt`;
}

const addressesOf = (texts: readonly string[]): Ip[] => texts.map(parseIp).filter((ip) => ip !== undefined);
const blocksOf = (texts: readonly string[]): Cidr[] => texts.map(parseCidr).filter((cidr) => cidr !== undefined);

/** Faults of the section that no single key shows: the path below `ovs`, and what is wrong. */
export function ovsContradictions(raw: RawOvs, bridge: string): (readonly [path: string, text: string])[] {
  const found: (readonly [string, string])[] = [];
  const { database = defaultDatabase, management, nodeAddresses = [], services } = raw;
  if (management === undefined && managementBeside(database, bridge) === undefined)
    found.push(["database", `"${database}" without "management", wanted both where no path tells the other`]);
  const [first, second] = addressesOf(nodeAddresses);
  if (first !== undefined && first.family === second?.family)
    found.push(["nodeAddresses[1]", `"${nodeAddresses[1]}" of the same family, wanted one of IPv4 and one of IPv6`]);
  const [one, other] = blocksOf(services?.cidrs ?? []);
  if (one !== undefined && one.ip.family === other?.ip.family)
    found.push([
      "services.cidrs[1]",
      `"${services?.cidrs?.[1]}" of the same family, wanted one of IPv4 and one of IPv6`,
    ]);
  const { mode = "encap" } = raw;
  if (raw.tenants === "multitenant" && mode !== "encap")
    found.push(["tenants", `"multitenant" with mode "${mode}", wanted "encap": the tunnel carries whose a packet is`]);
  const { gateway = defaultGateway, tunnelName = defaultTunnel, uplink } = raw;
  const names = { gateway, tunnelName, uplink };
  const taken = new Set([bridge]);
  for (const [key, name] of Object.entries(names)) {
    if (name === undefined) continue;
    if (taken.has(name)) found.push([key, `"${name}" for the second time, wanted a name for each port`]);
    taken.add(name);
  }
  return found;
}
