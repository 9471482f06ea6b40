import { DatabaseSync } from "node:sqlite";
import type { Owner } from "../../shared/cni/types.ts";
import { bitsOf, formatIp, type Ip } from "../../shared/net/ip.ts";
import { type Lease, leaseStates } from "../lease.ts";
import { type AddressKey, ipOfKey, keyOfNumber, numberOfKey } from "../store/address-key.ts";
import { type LeaseRow, leaseOf } from "../store/lease-row.ts";
import type { PodPlace } from "../store/store.ts";
import { namelessOwner } from "./integrity.ts";

/** What could be read of a damaged database. */
export interface Salvage {
  /** One lease for every address in use that could be read, by network and address. */
  readonly leases: readonly Lease[];
  readonly marks: ReadonlyMap<string, string>;
  readonly pendingDetaches: readonly Owner[];
  readonly remembered: readonly Remembered[];
  /** Whether the leases are certain to hold every address in use. */
  readonly complete: boolean;
}

/** An address that a pod had last, for sticky networks. */
export interface Remembered {
  readonly place: PodPlace;
  readonly rangeSet: number;
  readonly ip: Ip;
}

/** No node has more leases side by side than this; a longer run comes from damage. */
const longestRun = 1n << 21n;

/** No boot has this name, so a lease with it is stale in every boot. */
const unknownBoot = "unknown";

/**
 * Reads what SQLite still reads. Every address in use is stored in three trees: the leases, the index of their owners,
 * and the runs of taken addresses. Each is read from both ends up to the damage, because one tree may have what another
 * has lost.
 */
export function salvage(path: string): Salvage {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const reader = new Reader(db);
    const found = new Map<string, Lease>();
    const add = (lease: Lease): void => {
      const key = `${lease.owner.network} ${formatIp(lease.address.ip)}`;
      if (!found.has(key)) found.set(key, lease);
    };
    const leases = reader.bothWays<LeaseRow>("SELECT * FROM lease", ["network", "address"]);
    for (const row of leases.rows) if (isSoundLease(row)) add(leaseOf({ ...row, sticky: row.sticky === 1 ? 1 : 0 }));
    // The index holds the primary key too, so it can be read without the table.
    const owners = "SELECT network, sandbox_id, ifname, address FROM lease INDEXED BY lease_owner";
    const owned = reader.bothWays<OwnerRow>(owners, ["network", "sandbox_id", "ifname", "address"]);
    for (const row of owned.rows) if (isSoundOwner(row)) add(bareLease(ownerOf(row), row.address));
    // Leases and index agree, so neither has lost an entry of the other.
    const leasesAgree =
      leases.whole && owned.whole && found.size === leases.rows.length && found.size === owned.rows.length;
    const taken = reader.bothWays<RunRow>("SELECT network, first, last FROM taken", ["network", "first"]);
    let runsAreSound = taken.whole;
    for (const run of taken.rows) {
      if (isSoundRun(run))
        for (const address of addressesOf(run)) add(bareLease(namelessOwner(run.network, ipOfKey(address)), address));
      else runsAreSound = false;
    }
    const marks = reader.bothWays<MarkRow>("SELECT name, value FROM mark", ["name"]).rows;
    const detaches = "SELECT network, sandbox_id, ifname FROM departure";
    const left = reader.bothWays<Omit<OwnerRow, "address">>(detaches, ["network", "sandbox_id", "ifname"]).rows;
    return {
      leases: [...found.values()],
      marks: new Map(marks.filter(isSoundMark).map(({ name, value }) => [name, value])),
      pendingDetaches: left.filter((row) => areTexts(row.network, row.sandbox_id, row.ifname)).map(ownerOf),
      remembered: reader
        .bothWays<RememberedRow>("SELECT * FROM remembered", ["turn"])
        .rows.filter(isSoundMemory)
        .sort((a, b) => a.turn - b.turn)
        .map(rememberedOf),
      complete: runsAreSound || leasesAgree,
    };
  } finally {
    db.close();
  }
}

class Reader {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Rows of a tree, from its beginning as far as can be read, and if it breaks, from its end. */
  bothWays<Row>(select: string, key: readonly string[]): { readonly rows: readonly Row[]; readonly whole: boolean } {
    const rows: Row[] = [];
    const walk = (direction: "ASC" | "DESC"): boolean => {
      try {
        const order = key.map((column) => `${column} ${direction}`).join(", ");
        const sql = `${select} ORDER BY ${order}`;
        for (const row of this.#db.prepare(sql).iterate()) rows.push(row as unknown as Row);
        return true;
      } catch {
        return false; // Damage, or a missing table; the rows before it count.
      }
    };
    const whole = walk("ASC");
    if (!whole) walk("DESC");
    return { rows, whole };
  }
}

interface OwnerRow {
  readonly network: string;
  readonly sandbox_id: string;
  readonly ifname: string;
  readonly address: AddressKey;
}

interface RunRow {
  readonly network: string;
  readonly first: AddressKey;
  readonly last: AddressKey;
}

interface MarkRow {
  readonly name: string;
  readonly value: string;
}

interface RememberedRow {
  readonly turn: number;
  readonly network: string;
  readonly pod_namespace: string;
  readonly pod_name: string;
  readonly ifname: string;
  readonly range_set: number;
  readonly address: AddressKey;
}

const rememberedOf = (row: RememberedRow): Remembered => ({
  place: { network: row.network, ifname: row.ifname, namespace: row.pod_namespace, name: row.pod_name },
  rangeSet: row.range_set,
  ip: ipOfKey(row.address),
});

const ownerOf = (row: Omit<OwnerRow, "address">): Owner => ({
  network: row.network,
  sandboxId: row.sandbox_id,
  ifname: row.ifname,
});

/** Without subnet and gateway, as a lease imported from host-local; its owner's next ADD fills them in. */
function bareLease(owner: Owner, address: AddressKey): Lease {
  const ip = ipOfKey(address);
  return {
    owner,
    rangeSet: 0,
    address: { ip, prefix: bitsOf(ip.family) },
    state: "allocated",
    bootId: unknownBoot,
    generation: 0,
    allocatedAtMs: Date.now(),
  };
}

function* addressesOf({ first, last }: RunRow): Generator<AddressKey, void> {
  for (let number = numberOfKey(first); number <= numberOfKey(last); number++) yield keyOfNumber(number);
}

// The tables' constraints were checked when a row was written; a damaged row may break them.

const areTexts = (...values: readonly unknown[]): boolean => values.every((value) => typeof value === "string");
const areNumbers = (...values: readonly unknown[]): boolean => values.every((value) => Number.isSafeInteger(value));
const isKey = (value: unknown): value is AddressKey => value instanceof Uint8Array && value.length === 16;

const isSoundOwner = (row: OwnerRow): boolean =>
  areTexts(row.network, row.sandbox_id, row.ifname) && isKey(row.address);

const isSoundLease = (row: LeaseRow): boolean =>
  isSoundOwner(row) &&
  areTexts(row.boot_id) &&
  areNumbers(row.prefix, row.range_set, row.generation, row.allocated_at_ms) &&
  leaseStates.includes(row.state) &&
  (row.gateway === null || isKey(row.gateway)) &&
  (row.released_at_ms === null) === (row.state === "allocated");

const isSoundMark = ({ name, value }: MarkRow): boolean => areTexts(name, value);

const isSoundMemory = (row: RememberedRow): boolean =>
  areTexts(row.network, row.pod_namespace, row.pod_name, row.ifname) &&
  areNumbers(row.turn, row.range_set) &&
  isKey(row.address);

const isSoundRun = (row: RunRow): boolean =>
  areTexts(row.network) &&
  isKey(row.first) &&
  isKey(row.last) &&
  numberOfKey(row.last) - numberOfKey(row.first) < longestRun;
