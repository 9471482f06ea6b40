import { CniCode, CniError } from "../../../shared/errors.ts";
import type { SwitchKind } from "../../config/ovs-config.ts";
import { insertBridge, insertPort, removePorts, Transaction, transactAndApply } from "../../protocols/ovsdb/mod.ts";
import type { NodePort } from "./node-ports.ts";
import { roleOf } from "./port-identity.ts";
import { bridgeNamed, interfaceNamed, portNamed, portsOf, type SwitchDatabase } from "./switch-database.ts";

/** The node's bridge, as it is to stand in the database. */
export interface NodeBridge {
  readonly name: string;
  readonly kind: SwitchKind;
  /** Of the bridge's own port; absent: as it comes. */
  readonly mac?: string;
  readonly ports: readonly NodePort[];
}

const columns = { fail_mode: "secure", protocols: ["OpenFlow10", "OpenFlow13", "OpenFlow15"] } as const;

/**
 * Has the bridge with these ports, all in one transaction and only what differs, and waits until the switch has made
 * them. Ports of ours that the node no longer needs go; those of others stay.
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
    return role !== undefined && role !== "pod" && !wanted.has(name);
  });
  if (stale.length > 0)
    removePorts(
      transaction,
      bridge.name,
      stale.map(({ _uuid }) => _uuid),
    );
  if (transaction.steps.length > 0) await transactAndApply(db, transaction);
}

/** Takes a port of the node away and waits until the switch has let go of it, so that it is made anew. @throws {OvsdbError} */
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
    `Cannot make the ${role} port "${name}" on "${bridge}": Open vSwitch has a port of that name that is not ours, wanted the name free`,
  );
