import type { AddressKey } from "./address-key.ts";

/** Statements whose texts are long or put together. Why they are written as they are: `SqliteStore.#rows`. */

/**
 * A statement for each limit; these are few. The text is there already when a call asks for it: to put one together and
 * to look for its statement takes as long as to run that.
 */
function limited(text: string): (limit: number) => string {
  const known = new Map<number, string>();
  return (limit) => {
    const made = known.get(limit);
    if (made !== undefined) return made;
    const statement = `${text} LIMIT ${limit}`;
    known.set(limit, statement);
    return statement;
  };
}

export const addLease =
  "INSERT INTO lease VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
export const changeLease =
  "UPDATE lease SET (prefix, gateway, range_set, sandbox_id, ifname, state, pod_namespace, pod_name, pod_uid, boot_id, generation, allocated_at_ms, released_at_ms, sticky) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE network = ? AND address = ?";
export const ownersLeases =
  "SELECT * FROM lease INDEXED BY lease_owner WHERE network IN (?) AND sandbox_id IN (?) AND ifname IN (?) ORDER BY address";
export const longestCooling = limited(
  "SELECT * FROM lease INDEXED BY lease_left WHERE network IN (?) AND state = 'cooling' AND released_at_ms <= ? AND address BETWEEN ? AND ? ORDER BY released_at_ms, generation",
);
export const cooled = limited(
  "SELECT * FROM lease INDEXED BY lease_left WHERE network = ? AND state = 'cooling' AND released_at_ms <= ?",
);

/** An unbroken run of addresses that have a lease. */
export interface RunRow {
  readonly first: AddressKey;
  readonly last: AddressKey;
}

/** A run, and whether an address lies in it. */
export interface RunAround extends RunRow {
  readonly covers: 0 | 1;
  readonly begins: 0 | 1;
  readonly ends: 0 | 1;
}

/** A run near a free address, and on which side of it. */
export interface AdjacentRow extends RunRow {
  readonly ends_before: 0 | 1;
  readonly begins_behind: 0 | 1;
}

const runsUpTo = "FROM taken WHERE network IN (?) AND first <= ? ORDER BY first DESC";
/** Which run an address lies in, and whether at its ends. SQLite compares keys in a tenth of the time that numbers take. */
export const runAround = `SELECT first, last, last >= ? AS covers, first = ? AS begins, last = ? AS ends ${runsUpTo} LIMIT 1`;
/** The runs on either side of a free address, by the key before it and the one behind it. */
export const adjacentRuns = `SELECT first, last, last = ? AS ends_before, first = ? AS begins_behind ${runsUpTo} LIMIT 2`;
