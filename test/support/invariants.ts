import { DatabaseSync } from "node:sqlite";

/**
 * The invariants of a lease database, whatever happened to the processes that wrote it: one sentence for each that does
 * not hold. Opens the file as any process does. Shares no code with the product, since its own check (`pipette ipam
 * check`) could share its mistakes.
 */
export function brokenInvariants(path: string): readonly string[] {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec("BEGIN IMMEDIATE; ROLLBACK");
    const all = (sql: string): readonly string[] =>
      db
        .prepare(sql)
        .all()
        .map((row) => Object.values(row).join(" "));
    const damage = all("PRAGMA integrity_check").filter((line) => line !== "ok");
    if (damage.length > 0) return damage;
    // A run of taken addresses is a stretch of leases without a gap, and with a gap on either side of it.
    const keys = all("SELECT network || ' ' || hex(address) FROM lease ORDER BY network, address");
    const runs = all("SELECT network, hex(first), hex(last) FROM taken ORDER BY network, first");
    const doubled = all(
      "SELECT network, sandbox_id, ifname, range_set, 'holds', count(*) FROM lease WHERE state = 'allocated' GROUP BY 1, 2, 3, 4 HAVING count(*) > 1",
    );
    const [generation = "0"] = all("SELECT value FROM mark WHERE name = 'generation'");
    const beyond = all(`SELECT 'generation', generation FROM lease WHERE generation > ${Number(generation)}`);
    return [
      ...doubled,
      ...beyond,
      ...(runs.join() === runsOf(keys).join() ? [] : [`taken is ${runs}, leases are ${keys}`]),
    ];
  } finally {
    db.close();
  }
}

function runsOf(keys: readonly string[]): readonly string[] {
  const runs: { network: string; first: string; last: string }[] = [];
  for (const key of keys) {
    const [network = "", address = ""] = key.split(" ");
    const run = runs.at(-1);
    if (run?.network === network && BigInt(`0x${run.last}`) + 1n === BigInt(`0x${address}`)) run.last = address;
    else runs.push({ network, first: address, last: address });
  }
  return runs.map(({ network, first, last }) => `${network} ${first} ${last}`);
}
