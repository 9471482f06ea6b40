import type { DatabaseSync } from "node:sqlite";
import type { Owner } from "../../shared/cni/types.ts";
import { cooledTest } from "../allocate/cooldown.ts";
import { networksUsed } from "../allocate/marks.ts";
import type { Lease } from "../lease.ts";
import { type AddressKey, numberOfKey } from "./address-key.ts";
import { type LeaseRow, leaseOf } from "./lease-row.ts";
import type { TakenRun } from "./runs-of-leases.ts";
import { storeError } from "./sqlite-errors.ts";
import { closeDatabase, openDatabase } from "./sqlite-open.ts";

/** An attachment that the agent has yet to unwire. */
export interface PendingDetachRow {
  readonly owner: Owner;
  readonly sinceMs: number;
}

/**
 * The whole database at one moment, for looking: other processes go on meanwhile and do not show. Leases come one by
 * one, so that a million of them takes no memory. Keeps the log from being cut short while it is open.
 */
export class StoreSnapshot implements Disposable {
  readonly path: string;
  readonly #db: DatabaseSync;
  #closed = false;

  private constructor(db: DatabaseSync, path: string) {
    this.#db = db;
    this.path = path;
  }

  /**
   * `undefined` where there is no file.
   * @throws {CniError} code 101 naming the path
   */
  static async open(path: string): Promise<StoreSnapshot | undefined> {
    const db = await openDatabase(path);
    if (db === undefined) return undefined;
    const snapshot = new StoreSnapshot(db, path);
    // The first read fixes what is seen.
    snapshot.#guarded(() => db.exec("BEGIN; SELECT count(*) FROM sqlite_schema"));
    return snapshot;
  }

  /** By network and address. */
  *leases(network?: string): Generator<Lease, void> {
    const rows =
      network === undefined
        ? this.#each<LeaseRow>("SELECT * FROM lease ORDER BY network, address")
        : this.#each<LeaseRow>("SELECT * FROM lease WHERE network = ? ORDER BY address", network);
    for (const row of rows) yield leaseOf(row);
  }

  /**
   * The leases that keep their addresses: one whose cooldown is over at `nowMs` is a free address.
   * @param configured as in `cooledTest`
   */
  *kept(nowMs: number, network?: string, configured?: Parameters<typeof cooledTest>[2]): Generator<Lease, void> {
    const isCooled = cooledTest(this, nowMs, configured);
    for (const lease of this.leases(network)) if (!isCooled(lease)) yield lease;
  }

  /** Every network that has a lease or ever gave one, in order. */
  networks(): readonly string[] {
    // One look-up for each, however many leases they have.
    const sql =
      "WITH RECURSIVE found(name) AS (SELECT min(network) FROM lease UNION ALL SELECT (SELECT min(network) FROM lease WHERE network > name) FROM found WHERE name IS NOT NULL) SELECT name FROM found WHERE name IS NOT NULL";
    const leased = [...this.#each<{ name: string }>(sql)].map(({ name }) => name);
    return [...new Set([...leased, ...networksUsed(this.marks().keys())])].sort();
  }

  countLeases(): number {
    const [row] = [...this.#each<{ number: number }>("SELECT count(*) AS number FROM lease")];
    return row?.number ?? 0;
  }

  /** By network and address. */
  *runs(): Generator<TakenRun, void> {
    const sql = "SELECT network, first, last FROM taken ORDER BY network, first";
    for (const { network, first, last } of this.#each<{ network: string; first: AddressKey; last: AddressKey }>(sql))
      yield { network, first: numberOfKey(first), last: numberOfKey(last) };
  }

  mark(name: string): string | undefined {
    const [row] = [...this.#each<{ value: string }>("SELECT value FROM mark WHERE name = ?", name)];
    return row?.value;
  }

  marks(): ReadonlyMap<string, string> {
    const rows = this.#each<{ name: string; value: string }>("SELECT name, value FROM mark ORDER BY name");
    return new Map([...rows].map(({ name, value }) => [name, value]));
  }

  /** Oldest first. */
  pendingDetaches(): readonly PendingDetachRow[] {
    const sql = "SELECT network, sandbox_id, ifname, since_ms FROM departure ORDER BY since_ms";
    const rows = this.#each<{ network: string; sandbox_id: string; ifname: string; since_ms: number }>(sql);
    return [...rows].map(({ network, sandbox_id: sandboxId, ifname, since_ms: sinceMs }) => ({
      owner: { network, sandboxId, ifname },
      sinceMs,
    }));
  }

  /** Generations that more than one lease has, `most` at most. */
  generationsTwice(most: number): readonly number[] {
    const sql = `SELECT generation FROM lease GROUP BY generation HAVING count(*) > 1 LIMIT ${most}`;
    return [...this.#each<{ generation: number }>(sql)].map(({ generation }) => generation);
  }

  /** Owners with more than one allocated address of a range set and family, `most` at most. */
  holdingTwice(most: number): readonly Owner[] {
    // The first twelve bytes of a key tell the family.
    const sql = `SELECT network, sandbox_id AS sandboxId, ifname FROM lease WHERE state = 'allocated' GROUP BY network, sandbox_id, ifname, range_set, substr(address, 1, 12) = x'00000000000000000000ffff' HAVING count(*) > 1 LIMIT ${most}`;
    return [...this.#each<Owner>(sql)].map(({ network, sandboxId, ifname }) => ({ network, sandboxId, ifname }));
  }

  /** What SQLite finds wrong with the file, in its words, `most` at most; also where a table breaks its own rules. */
  damage(most: number): readonly string[] {
    const rows = this.#each<{ integrity_check: string }>(`PRAGMA integrity_check(${most})`);
    return [...rows].map((row) => row.integrity_check).filter((line) => line !== "ok");
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#db.exec("COMMIT");
    } catch {
      // Nothing was written; closing ends it too.
    }
    closeDatabase(this.#db, this.path);
  }

  *#each<Row>(sql: string, ...values: readonly string[]): Generator<Row, void> {
    const rows = this.#guarded(() => this.#db.prepare(sql).iterate(...values));
    for (;;) {
      const next = this.#guarded(() => rows.next());
      if (next.done === true) return;
      yield next.value as unknown as Row;
    }
  }

  #guarded<T>(use: () => T): T {
    try {
      return use();
    } catch (caught) {
      throw storeError(caught, this.path);
    }
  }
}
