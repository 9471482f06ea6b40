import { setTimeout } from "node:timers/promises";
import { Allocator } from "../../../ipam/mod.ts";
import { formatIp } from "../../../shared/ip.ts";
import { standingId } from "../../support/filled-store.ts";
import { configFor, network, type Pool } from "./pool.ts";

// One process that uses the allocator as the agent does: it keeps the database open. Its work comes as JSON in the
// first argument, its answer goes to stdout as JSON.

export interface Work {
  readonly dataDir: string;
  readonly pool: Pool;
  /** Distinct among the workers of one database. */
  readonly name: string;
  /** ADDs to make; as many CHECKs and DELs follow where `alsoOthers`. */
  readonly calls: number;
  readonly alsoOthers: boolean;
  /** When to begin, in milliseconds since 1970. */
  readonly startAtMs: number;
}

/** Times in microseconds, one for each call. */
export interface Worked {
  readonly add: readonly number[];
  readonly check: readonly number[];
  readonly del: readonly number[];
  readonly addresses: readonly string[];
  /** Milliseconds since 1970. */
  readonly endedMs: number;
  readonly residentMb: number;
}

if (import.meta.main) console.log(JSON.stringify(await work(JSON.parse(process.argv[2] ?? "{}"))));

async function work({ dataDir, pool, name, calls, alsoOthers, startAtMs }: Work): Promise<Worked> {
  using allocator = await Allocator.open(dataDir);
  const config = configFor(pool, dataDir);
  const owners = Array.from({ length: calls }, (_, i) => ({
    network,
    sandboxId: `${name}-${i}-`.padEnd(64, "0"),
    ifname: "eth0",
  }));
  await setTimeout(Math.max(0, startAtMs - Date.now()));
  const addresses: string[] = [];
  const timed = (run: (i: number) => void): number[] =>
    owners.map((_, i) => {
      const from = Bun.nanoseconds();
      run(i);
      return (Bun.nanoseconds() - from) / 1000;
    });
  const add = timed((i) => {
    for (const { address } of allocator.allocate(owners[i]!, config).leases) addresses.push(formatIp(address.ip));
  });
  const endedMs = Date.now();
  // Those that stand already, evenly all over the pool.
  const standing =
    pool.leases === 0 ? owners : owners.map((owner, i) => ({ ...owner, sandboxId: spread(pool, i, calls) }));
  const check = alsoOthers ? timed((i) => allocator.find(standing[i]!)) : [];
  const del = alsoOthers ? timed((i) => allocator.release(owners[i]!, "cooling")) : [];
  return { add, check, del, addresses, endedMs, residentMb: process.memoryUsage().rss / 1e6 };
}

function spread({ leases }: Pool, i: number, calls: number): string {
  return standingId(Math.floor((i * leases) / calls));
}
