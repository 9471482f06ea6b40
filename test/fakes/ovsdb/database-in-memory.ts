import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JsonSplitter } from "../../../agent/protocols/ovsdb/json-splitter.ts";
import { reasonOf } from "../../../shared/reason.ts";

type Row = Record<string, unknown>;
type Operation = { readonly op: string; readonly table: string } & Readonly<Record<string, unknown>>;

/** Who refers to the rows of a table: those that nobody refers to go. */
const owners = {
  Bridge: ["Open_vSwitch", "bridges"],
  Port: ["Bridge", "ports"],
  Interface: ["Port", "interfaces"],
} as const;
const root = "00000000-0000-4000-8000-000000000000";

/**
 * For unit tests only: the database of Open vSwitch behind a socket (RFC 7047), and as much of ovs-vswitchd as gives ports
 * their numbers. It does what a real one will not do on request: makes no port, or goes away at an exact operation.
 */
export class DatabaseInMemory implements AsyncDisposable {
  #tables = new Map<string, Map<string, Row>>([
    ["Open_vSwitch", new Map([[root, { next_cfg: 0, cur_cfg: 0 }]])],
    ...["Bridge", "Port", "Interface"].map((table) => [table, new Map()] as const),
  ]);
  readonly #directory = mkdtempSync(join(tmpdir(), "pipette-ovsdb-"));
  /** What each client watches: tables with their columns. */
  readonly #watchers = new Map<Socket, Readonly<Record<string, readonly [{ readonly columns: readonly string[] }]>>>();
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #rows = 0;
  #number = 0;
  #device = 0;
  /** What each transaction of a client did: `insert Port`, … */
  readonly done: (readonly string[])[] = [];
  /** Why the switch can make no port of a device; absent: it can. */
  problemOf: (name: string) => string | undefined = () => undefined;
  /** Whether ovs-vswitchd acts on what the database has. */
  isSwitchThere = true;
  /** What is answered in place of carrying a transaction out: an error's name. */
  refuse: (operations: readonly string[]) => string | undefined = () => undefined;

  get address(): string {
    return `unix:${this.#directory}/db.sock`;
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((listening) => server.listen(`${this.#directory}/db.sock`, listening));
  }

  /** All connections end, and nobody can connect before the next `listen`. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const server = this.#server;
    this.#server = undefined;
    if (server !== undefined) await new Promise((closed) => server.close(closed));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** A row by its name, with sets and maps as arrays and objects. */
  named(table: "Bridge" | "Port" | "Interface", name: string): Row | undefined {
    const row = [...this.#table(table).values()].find((each) => each["name"] === name);
    return row && Object.fromEntries(Object.entries(row).map(([column, value]) => [column, plain(value)]));
  }

  names(table: "Bridge" | "Port" | "Interface"): readonly string[] {
    return [...this.#table(table).values()].map(({ name }) => String(name)).toSorted();
  }

  /** What somebody else writes into a row, in the database's own JSON; a column that is `undefined` gets its default. */
  change(table: "Bridge" | "Port" | "Interface", name: string, columns: Row): void {
    this.transact([{ op: "update", table, where: [["name", "==", name]], row: columns }]);
  }

  /** What anybody has done: all of it, or nothing. @throws {Error} with the name of the error */
  transact(operations: readonly Operation[]): readonly unknown[] {
    const before = new Map([...this.#tables].map(([table, rows]) => [table, new Map(rows)]));
    const named = new Map<string, string>();
    for (const { op, "uuid-name": name } of operations) if (op === "insert") named.set(String(name), this.#newUuid());
    try {
      const results = operations.map((operation) => this.#run(resolved(operation, named) as Operation, named));
      this.#collect();
      this.#requireUnique();
      this.#tell(before);
      if (this.isSwitchThere) queueMicrotask(() => this.actAsSwitch());
      return results;
    } catch (caught) {
      this.#tables = before;
      throw caught;
    }
  }

  /** ovs-vswitchd carries out what the database has. */
  actAsSwitch(): void {
    const before = new Map([...this.#tables].map(([table, rows]) => [table, new Map(rows)]));
    for (const [uuid, row] of this.#table("Interface")) {
      if (row["ofport"] !== undefined && row["ofport"] !== -1) continue;
      const error = this.problemOf(String(row["name"]));
      const requested = row["ofport_request"];
      const ofport = error === undefined ? (typeof requested === "number" ? requested : ++this.#number) : -1;
      const device = error === undefined ? { ifindex: ++this.#device } : {};
      const { error: _, ...rest } = row;
      this.#table("Interface").set(uuid, { ...rest, ofport, ...device, ...(error === undefined ? {} : { error }) });
    }
    const own = this.#table("Open_vSwitch").get(root) ?? {};
    this.#table("Open_vSwitch").set(root, { ...own, cur_cfg: own["next_cfg"] });
    this.#tell(before);
  }

  #newUuid(): string {
    return `00000000-0000-4000-8000-${String(++this.#rows).padStart(12, "0")}`;
  }

  #table(name: string): Map<string, Row> {
    const table = this.#tables.get(name);
    if (table === undefined) throw new Error(`Broken invariant: no table "${name}"`);
    return table;
  }

  #run(operation: Operation, named: ReadonlyMap<string, string>): unknown {
    const { op, table, where, row } = operation;
    if (op === "comment" || op === "commit") return {};
    const rows = this.#table(table);
    if (op === "insert") {
      const uuid = named.get(String(operation["uuid-name"])) ?? this.#newUuid();
      rows.set(uuid, row as Row);
      return { uuid: ["uuid", uuid] };
    }
    const found = [...rows].filter((each) => (where as Condition[]).every((condition) => holds(each, condition)));
    switch (op) {
      case "update":
        for (const [uuid, old] of found) rows.set(uuid, { ...old, ...(row as Row) });
        return { count: found.length };
      case "mutate":
        for (const [uuid, old] of found) rows.set(uuid, mutated(old, operation["mutations"] as Mutation[]));
        return { count: found.length };
      case "select":
        return {
          rows: found.map(([uuid, each]) => ({
            ...Object.fromEntries((operation["columns"] as string[]).map((column) => [column, each[column] ?? empty])),
            _uuid: ["uuid", uuid],
          })),
        };
      case "wait": {
        const isSame = found.length === (operation["rows"] as Row[]).length;
        if (isSame !== (operation["until"] === "==")) throw new Error("timed out");
        return {};
      }
      default:
        throw new Error(`not supported: ${op}`);
    }
  }

  /** Takes away what nobody refers to. */
  #collect(): void {
    for (const [table, [owner, column]] of Object.entries(owners)) {
      const referred = new Set(
        [...this.#table(owner).values()].flatMap((row) => elements(row[column]).map((each) => (each as string[])[1])),
      );
      for (const uuid of this.#table(table).keys()) if (!referred.has(uuid)) this.#table(table).delete(uuid);
    }
  }

  #requireUnique(): void {
    for (const table of Object.keys(owners)) {
      const names = [...this.#table(table).values()].map(({ name }) => name);
      if (new Set(names).size < names.length) throw new Error("constraint violation");
    }
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#watchers.delete(socket);
    });
    const splitter = new JsonSplitter();
    socket.on("data", (chunk: Uint8Array) => {
      splitter.push(chunk);
      for (let piece = splitter.next(); piece?.t === "text"; piece = splitter.next())
        this.#answer(socket, JSON.parse(piece.text));
    });
  }

  #answer(socket: Socket, asked: { method: string; params: readonly unknown[]; id: unknown }): void {
    const { method, params, id } = asked;
    const say = (result: unknown, error: unknown = null): void =>
      void socket.write(JSON.stringify({ id, result, error }));
    if (method === "echo") say(params);
    else if (method === "monitor") {
      const watched = params[2] as Readonly<Record<string, readonly [{ readonly columns: readonly string[] }]>>;
      this.#watchers.set(socket, watched);
      say(this.#changes(watched, new Map()));
    } else if (method === "transact") {
      const operations = params.slice(1) as Operation[];
      const words = operations.map(({ op, table }) => (table === undefined ? op : `${op} ${table}`));
      const refusal = this.refuse(words);
      try {
        if (refusal !== undefined) throw new Error(refusal);
        const results = this.transact(operations);
        if (words.some((word) => word !== "comment")) this.done.push(words);
        say(results);
      } catch (caught) {
        say([{ error: reasonOf(caught), details: "" }]);
      }
    } else say(null, { error: "unknown method" });
  }

  #tell(before: ReadonlyMap<string, ReadonlyMap<string, Row>>): void {
    for (const [socket, watched] of this.#watchers) {
      const changes = this.#changes(watched, before);
      if (Object.keys(changes).length > 0)
        socket.write(JSON.stringify({ id: null, method: "update", params: ["pipette", changes] }));
    }
  }

  #changes(
    watched: Readonly<Record<string, readonly [{ readonly columns: readonly string[] }]>>,
    before: ReadonlyMap<string, ReadonlyMap<string, Row>>,
  ): Record<string, Record<string, unknown>> {
    const changes: Record<string, Record<string, unknown>> = {};
    for (const [table, [{ columns }]] of Object.entries(watched)) {
      const of: Record<string, unknown> = {};
      const old = before.get(table) ?? new Map<string, Row>();
      const seen = (row: Row | undefined): string => JSON.stringify(columns.map((column) => row?.[column]));
      for (const uuid of old.keys()) if (!this.#table(table).has(uuid)) of[uuid] = { old: {} };
      for (const [uuid, row] of this.#table(table)) {
        if (old.has(uuid) && seen(old.get(uuid)) === seen(row)) continue;
        of[uuid] = { new: Object.fromEntries(columns.flatMap((each) => (each in row ? [[each, row[each]]] : []))) };
      }
      if (Object.keys(of).length > 0) changes[table] = of;
    }
    return changes;
  }
}

type Condition = readonly [column: string, test: string, value: unknown];
type Mutation = readonly [column: string, how: string, value: unknown];

const empty = ["set", []];

/** Of a set or a map; one element may stand without "set". */
function elements(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  const isList = Array.isArray(value) && (value[0] === "set" || value[0] === "map");
  return isList ? (value[1] as unknown[]) : [value];
}

const plain = (value: unknown): unknown =>
  Array.isArray(value) && value[0] === "map"
    ? Object.fromEntries(value[1])
    : Array.isArray(value) && value[0] === "set"
      ? value[1]
      : value;

const holds = ([uuid, row]: readonly [string, Row], [column, test, value]: Condition): boolean => {
  const isSame = JSON.stringify(column === "_uuid" ? ["uuid", uuid] : row[column]) === JSON.stringify(value);
  return isSame === (test === "==");
};

/** With the rows' UUIDs in the place of the names that a transaction gives them. */
function resolved(value: unknown, named: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value) && value[0] === "named-uuid") return ["uuid", named.get(String(value[1]))];
  if (Array.isArray(value)) return value.map((each) => resolved(each, named));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, named)]));
}

function mutated(row: Row, mutations: readonly Mutation[]): Row {
  const changed = { ...row };
  for (const [column, how, value] of mutations) {
    if (how === "+=") {
      changed[column] = Number(changed[column] ?? 0) + Number(value);
      continue;
    }
    const isMap = Array.isArray(value) && value[0] === "map";
    const wasMap = Array.isArray(row[column]) && (row[column] as unknown[])[0] === "map";
    const keyOf = (each: unknown): string => JSON.stringify(isMap ? (each as unknown[])[0] : each);
    const heldKeyOf = (each: unknown): string => JSON.stringify(wasMap ? (each as unknown[])[0] : each);
    const given = elements(value);
    const keys = new Set(given.map(keyOf));
    const standing = elements(changed[column]);
    // What is inserted into a map stays as it stands there.
    const kept = how === "insert" ? standing : standing.filter((each) => !keys.has(heldKeyOf(each)));
    const has = new Set(kept.map(heldKeyOf));
    const added = how === "insert" ? given.filter((each) => !has.has(keyOf(each))) : [];
    changed[column] = [isMap || wasMap ? "map" : "set", [...kept, ...added]];
  }
  return changed;
}
