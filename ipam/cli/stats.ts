import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { counted, formatJson } from "../../shared/terminal/printable.ts";
import { formatAge, formatTable } from "../../shared/terminal/table.ts";
import { readBootId } from "../allocator-env.ts";
import type { Lease } from "../lease.ts";
import { leaseView } from "./lease-view.ts";
import { Counter, type Pool, type PoolLook, poolOf, type Tally, taken, withPools } from "./pools.ts";
import { confOption, dataDirOption, jsonOption, networkOption, scopeOf } from "./scope.ts";

const action = "count addresses";

export const stats = defineCommand({
  action,
  about: `Counts the addresses of each range set of each network: all that pods can have, and how many of them are
allocated, releasing, cooling and free; how full that is, the oldest lease, and how much comes and goes.

Without --conf the ranges are what the database remembers: those that gave an address, without what is excluded.
Below stands how many addresses all range sets of the database have given since the oldest of these leases.`,
  options: { conf: confOption, network: networkOption, json: jsonOption, "data-dir": dataDirOption },
  exits: { 3: "there is no database, or no such network" },
  run: async ({ options }, io) => {
    return withPools(await scopeOf(options, io), action, io, (look) => {
      const report = reportOf(look, readBootId());
      io.stdout(options.json ? formatJson(reportView(report, Date.now())) : reportText(report, Date.now()));
      return exitStatus.done;
    });
  },
});

interface PoolReport {
  readonly pool: Pool;
  readonly tally: Tally;
  /** Addresses that can be given out. */
  readonly total: bigint;
  /** The oldest lease that is still allocated. */
  readonly oldest?: Lease;
  readonly earlierBoot: number;
}

interface Report {
  readonly pools: readonly PoolReport[];
  /** Leases outside every pool. */
  readonly outside: number;
  /** The generation of the latest lease: how many the database has given out so far. */
  readonly generation: number;
}

function reportOf({ pools, leases, marks }: PoolLook, bootId: string): Report {
  const counts = new Map(
    pools.map((pool) => [pool, { counter: new Counter(pool), oldest: undefined as Lease | undefined, earlierBoot: 0 }]),
  );
  let outside = 0;
  for (const lease of leases()) {
    const pool = poolOf(pools, lease.owner.network, lease.address.ip);
    const count = pool === undefined ? undefined : counts.get(pool);
    if (count === undefined) {
      outside++;
      continue;
    }
    count.counter.add(lease);
    if (lease.state !== "allocated") continue;
    if (count.oldest === undefined || lease.generation < count.oldest.generation) count.oldest = lease;
    if (bootId !== "" && lease.bootId !== "" && lease.bootId !== bootId) count.earlierBoot++;
  }
  return {
    pools: [...counts].map(([pool, { counter, oldest, earlierBoot }]) => ({
      pool,
      tally: counter.tally,
      total: counter.total,
      ...(oldest === undefined ? {} : { oldest }),
      earlierBoot,
    })),
    outside,
    generation: Number(marks.get("generation") ?? "0"),
  };
}

const percent = ({ tally, total }: PoolReport): number =>
  total === 0n ? 100 : Number((taken(tally) * 1000n) / total) / 10;

function churnOf(
  { oldest }: PoolReport,
  { generation }: Report,
  nowMs: number,
): { readonly allocations: number; readonly perHour?: number } | undefined {
  if (oldest === undefined) return undefined;
  // Negative where the count has been lost, which "check" reports.
  const allocations = Math.max(0, generation - oldest.generation);
  const ageMs = nowMs - oldest.allocatedAtMs;
  if (ageMs < leastForRateMs) return { allocations };
  return { allocations, perHour: Math.round((allocations * 36_000_000) / ageMs) / 10 };
}

/** A shorter time gives no useful rate per hour. */
const leastForRateMs = 60_000;

function reportView(report: Report, nowMs: number) {
  return {
    pools: report.pools.map((entry) => {
      const { pool, tally, total, oldest, earlierBoot } = entry;
      const churn = churnOf(entry, report, nowMs);
      return {
        network: pool.network,
        range: pool.range,
        from: pool.from,
        total,
        allocated: tally.allocated,
        releasing: tally.releasing,
        cooling: tally.cooling,
        excluded: tally.excluded,
        gateways: tally.gateway,
        free: tally.free,
        usedPercent: percent(entry),
        earlierBoot,
        ...(oldest === undefined ? {} : { oldest: leaseView(oldest) }),
        ...(churn === undefined ? {} : { churn }),
      };
    }),
    outsideRanges: report.outside,
    generation: report.generation,
  };
}

/** Generations count over the whole database, so no set can be said to have given so many. */
function churnText(report: Report, nowMs: number): string {
  const churns = report.pools.flatMap((entry) => churnOf(entry, report, nowMs) ?? []);
  const [most] = churns.toSorted((a, b) => b.allocations - a.allocations);
  if (most === undefined) return "";
  const rate = most.perHour === undefined ? "" : ` (${most.perHour} per hour)`;
  const given = counted(most.allocations, "address", "addresses");
  return `${given}${rate} given since the oldest of these leases, by all range sets of the database\n`;
}

function reportText(report: Report, nowMs: number): string {
  if (report.pools.length === 0)
    return "No addresses were given yet; --conf FILE shows the ranges of a configuration\n";
  const header = [
    "NETWORK",
    "RANGE",
    "TOTAL",
    "ALLOCATED",
    "RELEASING",
    "COOLING",
    "EXCLUDED",
    "FREE",
    "USED",
    "OLDEST",
  ];
  const rows = report.pools.map((entry) => {
    const { pool, tally, total, oldest } = entry;
    return [
      ...[pool.network, pool.range],
      ...[total, tally.allocated, tally.releasing, tally.cooling].map(String),
      pool.from === "store" ? "?" : String(tally.excluded),
      ...[String(tally.free), `${percent(entry)} %`],
      oldest === undefined ? "-" : formatAge(nowMs - oldest.allocatedAtMs),
    ];
  });
  const earlier = report.pools.reduce((sum, { earlierBoot }) => sum + earlierBoot, 0);
  return [
    formatTable([header, ...rows]),
    churnText(report, nowMs),
    report.outside === 0 ? "" : `${report.outside} more in no range shown here\n`,
    earlier === 0 ? "" : `${earlier} allocated before the last boot\n`,
  ].join("");
}
