import { rmSync } from "node:fs";
import { type Summary, summarize } from "../stats.ts";
import { fillOurs, type Pool } from "./pool.ts";
import { startWorker } from "./worker-process.ts";

/** Several processes that allocate from one database at the same time, as fast as they can. */
export interface WriterFigures {
  readonly writers: number;
  readonly leases: number;
  /** Of all together, from the first call to the last answer. */
  readonly allocationsPerSecond: number;
  /** Of one allocation, its waits for the others included, in microseconds. */
  readonly add: Summary;
  readonly doubled: number;
}

/** Time for every process to be there before the first begins: two cores start some eight in a second. */
const gatheringMs = (writers: number): number => 300 + 120 * writers;

export async function measureWriters(
  scratch: string,
  pool: Pool,
  writers: number,
  calls: number,
): Promise<WriterFigures> {
  const dataDir = `${scratch}/writers`;
  await fillOurs(dataDir, pool);
  try {
    const startAtMs = Date.now() + gatheringMs(writers);
    const each = Math.ceil(calls / writers);
    const worked = await Promise.all(
      Array.from({ length: writers }, (_, i) =>
        startWorker({ dataDir, pool, name: `writer-${i}`, calls: each, alsoOthers: false, startAtMs }),
      ),
    );
    const addresses = worked.flatMap((one) => one.addresses);
    const seconds = (Math.max(...worked.map(({ endedMs }) => endedMs)) - startAtMs) / 1000;
    return {
      writers,
      leases: pool.leases,
      allocationsPerSecond: addresses.length / seconds,
      add: summarize(worked.flatMap((one) => one.add)),
      doubled: addresses.length - new Set(addresses).size,
    };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
