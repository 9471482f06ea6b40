import { CniCode, CniError } from "../../../../shared/errors.ts";
import { formatIp, type Ip } from "../../../../shared/net/ip.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import type { SwitchKind, TunnelOptions } from "../../../config/ovs-config.ts";
import {
  insertBridge,
  insertPort,
  removeBridge,
  removePorts,
  Transaction,
  transactAndApply,
} from "../../../protocols/ovsdb/mod.ts";
import type { HostChange } from "../../host-change.ts";
import { bringCertificate } from "./node-certificate.ts";
import { type PortRole, roleIds, roleOf } from "./port-identity.ts";
import {
  bridgeNamed,
  interfaceNamed,
  openDatabase,
  portNamed,
  portsOf,
  type SwitchDatabase,
} from "./switch-database.ts";

/** A port that the node itself needs on its bridge, as a row of the database. */
export interface NodePort {
  readonly name: string;
  readonly role: Exclude<PortRole, "pod" | "peer">;
  readonly interface: {
    readonly type: string;
    readonly ofport_request: number;
    readonly options: Readonly<Record<string, string>>;
    readonly mac?: string;
    readonly mtu_request?: number;
  };
  readonly ids: Readonly<Record<string, string>>;
}

/** The reference system's numbers: far from those that pods get. */
const ofports = { tunnel: 32768, gateway: 32769, uplink: 32770 } as const;

export const gatewayPort = (name: string, mac: string, mtu: number): NodePort => ({
  name,
  role: "gateway",
  interface: { type: "internal", ofport_request: ofports.gateway, options: {}, mac, mtu_request: mtu },
  ids: roleIds("gateway"),
});

/** One port for all peers: each flow says where its packets go. @param localIp the outer source; absent: the route's */
export const tunnelPort = ({ name, type, port, checksum }: TunnelOptions, localIp: Ip | undefined): NodePort => ({
  name,
  role: "tunnel",
  interface: {
    type,
    ofport_request: ofports.tunnel,
    options: {
      remote_ip: "flow",
      key: "flow",
      ...(localIp === undefined ? {} : { local_ip: formatIp(localIp) }),
      ...(port === undefined || type === "gre" ? {} : { dst_port: String(port) }),
      ...(checksum ? { csum: "true" } : {}),
    },
  },
  ids: roleIds("tunnel"),
});

export const uplinkPort = (name: string): NodePort => ({
  name,
  role: "uplink",
  interface: { type: "", ofport_request: ofports.uplink, options: {} },
  ids: roleIds("uplink"),
});

/** The node's bridge, as a row of the database. */
export interface NodeBridge {
  readonly name: string;
  readonly kind: SwitchKind;
  /** Of the bridge's own port; absent: as it comes. */
  readonly mac?: string;
  readonly ports: readonly NodePort[];
  /** Tunnels to single nodes stay, which somebody else keeps. */
  readonly keepsPeers?: boolean;
}

const columns = { fail_mode: "secure", protocols: ["OpenFlow10", "OpenFlow13", "OpenFlow15"] } as const;

/**
 * Creates or updates the bridge with these ports in one transaction, and waits until the switch has made them. Ports of
 * ours that are no longer needed are removed; those of others stay.
 * @throws {OvsdbError}
 * @throws {CniError} 102 where a name is taken
 */
export async function ensureNodeBridge(db: SwitchDatabase, bridge: NodeBridge): Promise<void> {
  const transaction = new Transaction(`set up the bridge "${bridge.name}"`);
  bringBridge(db, bridge, transaction);
  for (const port of bridge.ports) bringPort(db, bridge.name, port, transaction);
  const wanted = new Set(bridge.ports.map(({ name }) => name));
  const stale = portsOf(db.view, bridge.name).filter(({ name, external_ids }) => {
    const role = roleOf(external_ids);
    const isKept = role === "pod" || (role === "peer" && bridge.keepsPeers === true);
    return role !== undefined && !isKept && !wanted.has(name);
  });
  if (stale.length > 0)
    removePorts(
      transaction,
      bridge.name,
      stale.map(({ _uuid }) => _uuid),
    );
  if (transaction.steps.length > 0) await transactAndApply(db, transaction);
}

/**
 * Removes a port of the node and waits until the switch has released it, so that it is created again.
 * @throws {OvsdbError}
 */
export async function dropNodePort(db: SwitchDatabase, bridge: string, name: string): Promise<void> {
  const row = portsOf(db.view, bridge).find((port) => port.name === name && roleOf(port.external_ids) !== undefined);
  if (row === undefined) return;
  const transaction = new Transaction(`remove the port "${name}", whose device is gone`);
  removePorts(transaction, bridge, [row._uuid]);
  await transactAndApply(db, transaction);
}

function bringBridge({ view }: SwitchDatabase, { name, kind, mac }: NodeBridge, transaction: Transaction): void {
  const other = { "disable-in-band": "true", ...(mac === undefined ? {} : { hwaddr: mac }) };
  const standing = bridgeNamed(view, name);
  if (standing === undefined) {
    insertBridge(transaction, { name, bridge: { ...columns, datapath_type: kind, other_config: other } });
    return;
  }
  const isOfKind = (standing.datapath_type === "" ? "system" : standing.datapath_type) === kind;
  if (!isOfKind) throw otherKind(name, standing.datapath_type, kind);
  const { fail_mode, protocols, other_config } = standing;
  const hasColumns = fail_mode === columns.fail_mode && columns.protocols.every((each) => protocols.has(each));
  const hasOther = Object.entries(other).every(([key, value]) => other_config.get(key) === value);
  if (hasColumns && hasOther) return;
  transaction.update("Bridge", [["name", "==", name]], {
    ...columns,
    other_config: new Map([...other_config, ...Object.entries(other)]),
  });
}

const otherKind = (name: string, is: string, wanted: SwitchKind): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot use the bridge "${name}": its "datapath_type" is "${is}", wanted "${wanted}" or no bridge of that name`,
  );

function bringPort({ view }: SwitchDatabase, bridge: string, port: NodePort, transaction: Transaction): void {
  const { name, role, ids } = port;
  const row = portNamed(view, name);
  const own = interfaceNamed(view, name);
  if (row === undefined || own === undefined) {
    insertPort(transaction, bridge, { name, interface: port.interface, port: { external_ids: ids } });
    return;
  }
  if (!portsOf(view, bridge).includes(row) || roleOf(row.external_ids) !== role) throw nameTaken(bridge, port);
  const wanted = port.interface;
  const isRight =
    own.type === wanted.type &&
    own.ofport_request === wanted.ofport_request &&
    own.mac === wanted.mac &&
    own.mtu_request === wanted.mtu_request &&
    own.options.size === Object.keys(wanted.options).length &&
    Object.entries(wanted.options).every(([option, value]) => own.options.get(option) === value);
  if (!isRight)
    transaction.update("Interface", [["name", "==", name]], { mac: undefined, mtu_request: undefined, ...wanted });
}

const nameTaken = (bridge: string, { name, role }: NodePort): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot make the ${role} port "${name}" on "${bridge}": Open vSwitch has a port of that name that is not ours`,
  );

/** Short, because a person has to start a missing database first. */
const patienceMs = 5_000;
const step = "ovs bridge";

/** Deletes the overlay's bridge with all ports; if others have ports on it, only our ports. */
export async function removeOverlay(database: string, bridge: string): Promise<readonly HostChange[]> {
  const what = `bridge "${bridge}" of Open vSwitch`;
  try {
    using db = openDatabase(database);
    await db.ready(patienceMs);
    await bringCertificate(db, undefined);
    const standing = bridgeNamed(db.view, bridge);
    const ports = portsOf(db.view, bridge).filter(({ name }) => name !== bridge);
    const ours = ports.filter(({ external_ids }) => roleOf(external_ids) !== undefined);
    if (standing === undefined || ours.length === 0) return [{ step, what, did: "was gone" }];
    const others = ports.filter((port) => !ours.includes(port));
    const transaction = new Transaction(`remove the ${what}`);
    if (others.length === 0) removeBridge(transaction, standing._uuid);
    else
      removePorts(
        transaction,
        bridge,
        ours.map(({ _uuid }) => _uuid),
      );
    await db.transact(transaction);
    if (others.length === 0) return [{ step, what, did: "undone" }];
    const names = others.map(({ name }) => `"${name}"`).join(", ");
    throw new CniError(
      CniCode.interfaceFailure,
      `Cannot remove the ${what}: it has ports ${names}, which are not ours`,
    );
  } catch (caught) {
    return [{ step, what, did: "failed", problem: reasonOf(caught) }];
  }
}
