import { generationMark } from "../allocate/marks.ts";
import { keyOfNumber } from "./address-key.ts";
import { type LeaseRow, leaseOf } from "./lease-row.ts";
import { runsOfLeases } from "./runs-of-leases.ts";
import { storeError } from "./sqlite-errors.ts";
import { closeDatabase, openDatabase, retryBusy } from "./sqlite-open.ts";

/**
 * Recomputes what follows from the leases: the runs of taken addresses, and the generation counter. One transaction;
 * leases stay as they are. Does nothing if there is no file.
 * @throws {CniError} code 101 naming the path, 11 where others keep the lock
 */
export async function repairStore(path: string): Promise<void> {
  const db = await openDatabase(path);
  if (db === undefined) return;
  try {
    retryBusy(() => db.exec("BEGIN IMMEDIATE"));
    const rows = db.prepare("SELECT * FROM lease ORDER BY network, address").all() as unknown as readonly LeaseRow[];
    const add = db.prepare("INSERT INTO taken VALUES (?, ?, ?)");
    db.exec("DELETE FROM taken");
    for (const { network, first, last } of runsOfLeases(rows.map(leaseOf)))
      add.run(network, keyOfNumber(first), keyOfNumber(last));
    const highest = rows.reduce((most, { generation }) => Math.max(most, generation), 0);
    const counted = db.prepare("SELECT value FROM mark WHERE name = ?").get(generationMark) as
      | { value: string }
      | undefined;
    if (highest > Number(counted?.value ?? "0"))
      db.prepare("INSERT OR REPLACE INTO mark VALUES (?, ?)").run(generationMark, String(highest));
    db.exec("COMMIT");
  } catch (caught) {
    throw storeError(caught, path);
  } finally {
    closeDatabase(db, path);
  }
}
