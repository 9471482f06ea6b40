import { type OvsdbClient, requestTimeoutMs } from "./client.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import type { AnyRow, TableName, WritableRow } from "./tables.ts";
import type { Inserted, Transaction, TransactionOutcome } from "./transaction.ts";
import type { Uuid } from "./values.ts";
import type { Monitored, WatchedTable } from "./view.ts";

/** Rows of one port, as a transaction inserts them. */
interface InsertedPort {
  readonly port: Inserted;
  readonly interface: Inserted;
}

/** A port with one interface of the same name, as nearly all are. */
interface NewPort {
  readonly name: string;
  readonly interface?: Omit<WritableRow<"Interface">, "name">;
  readonly port?: Omit<WritableRow<"Port">, "name" | "interfaces">;
}

interface NewBridge {
  readonly name: string;
  readonly bridge?: Omit<WritableRow<"Bridge">, "name" | "ports">;
  /** Of the bridge's own port, which has its name and is internal. */
  readonly localPort?: Pick<NewPort, "interface" | "port">;
}

/**
 * Makes a bridge with its own port. The transaction fails where one of the name is there: names are unique. Plain
 * operations, as those below: the caller decides about the wanted state.
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
function requireBridge(transaction: Transaction, name: string): void {
  transaction.wait("Bridge", [["name", "==", name]], { columns: ["name"], until: "==", rows: [{ name }] });
}

function insertPortRows(transaction: Transaction, { name, interface: own, port }: NewPort): InsertedPort {
  const inserted = transaction.insert("Interface", { ...own, name });
  return {
    interface: inserted,
    port: transaction.insert("Port", { ...port, name, interfaces: [inserted] }),
  };
}

/** For clients that watch `Open_vSwitch.cur_cfg`. */
type WatchesConfiguration = Monitored & { readonly Open_vSwitch: readonly string[] };
/** For clients that watch `name`, `ofport` and `error` of `Interface`. */
type WatchesInterfaces = Monitored & { readonly Interface: readonly string[] };

/**
 * Carries out a transaction and waits until ovs-vswitchd has acted on it: ports are made, their `ofport` is known.
 * The number that says so, `next_cfg`, is counted up in the same transaction, by operations added to it here.
 * @throws {OvsdbError} `not seen` where the database has the change and ovs-vswitchd has not
 */
export async function transactAndApply<M extends WatchesConfiguration>(
  client: OvsdbClient<M>,
  transaction: Transaction,
  timeoutMs: number = requestTimeoutMs,
): Promise<TransactionOutcome> {
  const { action } = transaction;
  requireWatched(client.monitored, "Open_vSwitch", ["cur_cfg"], action);
  const until = performance.now() + timeoutMs;
  transaction.mutate("Open_vSwitch", [], [["next_cfg", "+=", 1]]);
  const numbers = transaction.select("Open_vSwitch", [], ["next_cfg"]);
  const outcome = await client.transact(transaction, timeoutMs);
  const wanted = outcome.rowsOf(numbers)[0]?.next_cfg;
  if (wanted === undefined) {
    const is = "the database has no row in Open_vSwitch";
    throw new OvsdbError(OvsdbCode.notSeen, `Cannot ${action}: ${is}`);
  }
  const isDone = (row: AnyRow): boolean => typeof row["cur_cfg"] === "number" && row["cur_cfg"] >= wanted;
  await client.waitForRow("Open_vSwitch" as WatchedTable<M>, (row) => isDone(row as unknown as AnyRow), {
    timeoutMs: Math.max(1, until - performance.now()),
    action: `${action} by ovs-vswitchd, which is to reach configuration ${wanted}`,
  });
  return outcome;
}

/** Which interface: a row that is surely not an earlier one, or whatever has the name. */
type InterfaceKey = { readonly uuid: Uuid } | { readonly name: string };

export interface OfportOptions {
  readonly timeoutMs?: number;
  /**
   * Keeps waiting if ovs-vswitchd could not make the port, because its device may come later, as on Windows once a
   * container has started. Otherwise that is an error.
   */
  readonly patient?: boolean;
  /** Ends the wait when aborted. */
  readonly signal?: AbortSignal;
}

/**
 * The OpenFlow port number that ovs-vswitchd has given an interface.
 * @throws {OvsdbError} `refused` where ovs-vswitchd could not make the port, with its reason; `not seen`
 */
export async function waitForOfport<M extends WatchesInterfaces>(
  client: OvsdbClient<M>,
  key: InterfaceKey,
  { timeoutMs = requestTimeoutMs, patient = false, signal }: OfportOptions = {},
): Promise<number> {
  const what = "uuid" in key ? key.uuid : key.name;
  const action = `learn the port number of interface "${what}"`;
  requireWatched(client.monitored, "Interface", ["name", "ofport", "error"], action);
  const isIt = (row: AnyRow): boolean => ("uuid" in key ? row["_uuid"] === key.uuid : row["name"] === key.name);
  const isKnown = ({ ofport }: AnyRow): boolean => typeof ofport === "number" && (ofport >= 0 || !patient);
  const found = await client.waitForRow(
    "Interface" as WatchedTable<M>,
    (row) => isIt(row as unknown as AnyRow) && isKnown(row as unknown as AnyRow),
    { timeoutMs, action, signal },
  );
  const { ofport, error } = found as unknown as AnyRow;
  if (typeof ofport === "number" && ofport >= 0) return ofport;
  const reason = typeof error === "string" ? ` (${error})` : "";
  throw new OvsdbError(OvsdbCode.refused, `Cannot ${action}: ovs-vswitchd has made no port${reason}`);
}

function requireWatched(monitored: Monitored, table: TableName, columns: readonly string[], action: string): void {
  const watched: readonly string[] = monitored[table] ?? [];
  const missing = columns.filter((column) => !watched.includes(column));
  if (missing.length === 0) return;
  const is = `${missing.map((column) => `"${table}.${column}"`).join(" and ")} is not watched`;
  throw new OvsdbError(OvsdbCode.invalid, `Cannot ${action}: ${is}, wanted it among the client's columns`);
}
