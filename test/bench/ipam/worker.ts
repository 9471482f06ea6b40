import { setTimeout } from "node:timers/promises";
import { Allocator } from "../../../ipam/mod.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { standingId } from "../../support/filled-store.ts";
import { configFor, network, type Pool } from "./pool.ts";

// One process that uses the allocator as the agent does: it keeps the database open. Its work comes as JSON in the
// first argument, its answer goes to stdout as JSON.

export interface Work {
  readonly dataDir: string;
  readonly pool: Pool;
  /** Distinct among the workers of one database. */
  readonly name: string;
  /** ADDs to make; each is followed by a CHECK of a standing lease and its own DEL where `alsoOthers`. */
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
  const [add, check, del] = [[] as number[], [] as number[], [] as number[]];
  const addresses: string[] = [];
  for (const [i, owner] of owners.entries()) {
    const given = timed(add, () => allocator.allocate(owner, config));
    for (const { address } of given.leases) addresses.push(formatIp(address.ip));
    if (!alsoOthers) continue;
    const standing = pool.leases === 0 ? owner : { ...owner, sandboxId: spread(pool, i, calls) };
    timed(check, () => allocator.find(standing));
    // At once, since a pool that is nearly full has no room for them all.
    timed(del, () => allocator.release(owner, "cooling"));
  }
  return { add, check, del, addresses, endedMs: Date.now(), residentMb: process.memoryUsage().rss / 1e6 };
}

function timed<T>(times: number[], run: () => T): T {
  const from = Bun.nanoseconds();
  const result = run();
  times.push((Bun.nanoseconds() - from) / 1000);
  return result;
}

/** One of those that stand already: evenly all over the pool. */
function spread({ leases }: Pool, i: number, calls: number): string {
  return standingId(Math.floor((i * leases) / calls));
}
