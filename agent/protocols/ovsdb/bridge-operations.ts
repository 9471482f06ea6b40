import type { WritableRow } from "./tables.ts";
import type { Inserted, Transaction } from "./transaction.ts";
import type { Uuid } from "./values.ts";

/** Rows of one port, as a transaction inserts them. */
export interface InsertedPort {
  readonly port: Inserted;
  readonly interface: Inserted;
}

/** A port with one interface of the same name, as nearly all are. */
export interface NewPort {
  readonly name: string;
  readonly interface?: Omit<WritableRow<"Interface">, "name">;
  readonly port?: Omit<WritableRow<"Port">, "name" | "interfaces">;
}

export interface NewBridge {
  readonly name: string;
  readonly bridge?: Omit<WritableRow<"Bridge">, "name" | "ports">;
  /** Of the bridge's own port, which has its name and is internal. */
  readonly localPort?: Pick<NewPort, "interface" | "port">;
}

/**
 * Makes a bridge with its own port. The transaction fails where one of the name is there: names are unique.
 * Plain operations, as those below: what should stand is the caller's to know.
 */
export function insertBridge(
  transaction: Transaction,
  { name, bridge, localPort }: NewBridge,
): InsertedPort & { bridge: Inserted } {
  const type = { type: "internal", ...localPort?.interface };
  const own = insertPortRows(transaction, { name, ...localPort, interface: type });
  const inserted = transaction.insert("Bridge", { ...bridge, name, ports: [own.port] });
  transaction.mutate("Open_vSwitch", [], [["bridges", "insert", [inserted]]]);
  return { ...own, bridge: inserted };
}

/** Adds a port to a bridge. The transaction fails where the bridge is not there, or a port of the name is. */
export function insertPort(transaction: Transaction, bridge: string, port: NewPort): InsertedPort {
  requireBridge(transaction, bridge);
  const inserted = insertPortRows(transaction, port);
  transaction.mutate("Bridge", [["name", "==", bridge]], [["ports", "insert", [inserted.port]]]);
  return inserted;
}

/** Takes ports away from a bridge. Their rows go too: the server keeps none that nothing refers to. */
export function removePorts(transaction: Transaction, bridge: string, ports: readonly Uuid[]): void {
  transaction.mutate("Bridge", [["name", "==", bridge]], [["ports", "delete", ports]]);
}

/** Removes a bridge with all that belongs to it. */
export function removeBridge(transaction: Transaction, bridge: Uuid): void {
  transaction.mutate("Open_vSwitch", [], [["bridges", "delete", [bridge]]]);
}

/** Lets the transaction fail, with `timed out`, where there is no bridge of the name. */
export function requireBridge(transaction: Transaction, name: string): void {
  transaction.wait("Bridge", [["name", "==", name]], { columns: ["name"], until: "==", rows: [{ name }] });
}

function insertPortRows(transaction: Transaction, { name, interface: own, port }: NewPort): InsertedPort {
  const inserted = transaction.insert("Interface", { ...own, name });
  return {
    interface: inserted,
    port: transaction.insert("Port", { ...port, name, interfaces: [inserted] }),
  };
}
