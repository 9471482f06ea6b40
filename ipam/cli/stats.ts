import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson } from "../../shared/terminal/printable.ts";
import { formatAge, formatTable } from "../../shared/terminal/table.ts";
import { type Given, givenOf } from "../allocate/given.ts";
import { givenFrom } from "../allocate/marks.ts";
import { readBootId } from "../boot-id.ts";
import type { Lease } from "../lease.ts";
import { Counter, type Tally, taken } from "./census.ts";
import { leaseView, timeText } from "./lease-view.ts";
import { confOption, dataDirOption, jsonOption, networkOption } from "./options.ts";
import { type PoolLook, withPools } from "./pool-look.ts";
import { type Pool, poolOf } from "./pools.ts";
import { scopeOf } from "./scope.ts";

const action = "count addresses";

export const stats = defineCommand({
  action,
  about: `Counts the addresses of each range set of each network: all that pods can have, and how many of them are
allocated, releasing, cooling and free; how full that is, the oldest lease, and how much comes and goes.

Without --conf the ranges are what the database remembers: those that gave an address, without what is excluded.
ALLOCATIONS is how many addresses the set has given in all, and in an hour since it gave its first.`,
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
  /** Of the leases that stand, the one given first. */
  readonly oldest?: Lease;
  readonly given?: Given;
  readonly earlierBoot: number;
}

interface Report {
  readonly pools: readonly PoolReport[];
  /** Leases that no pool has. */
  readonly outside: number;
  /** Of the lease given last: how many the database has given in its life. */
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
      ...givenIn(pool, marks),
      earlierBoot,
    })),
    outside,
    generation: Number(marks.get("generation") ?? "0"),
  };
}

const percent = ({ tally, total }: PoolReport): number =>
  total === 0n ? 100 : Number((taken(tally) * 1000n) / total) / 10;

function givenIn({ network, range }: Pool, marks: PoolLook["marks"]): Pick<PoolReport, "given"> {
  const given = givenOf(marks.get(givenFrom(network, range)));
  return given === undefined ? {} : { given };
}

function churnOf(
  { given }: PoolReport,
  nowMs: number,
): { readonly allocations: number; readonly since: string; readonly perHour?: number } | undefined {
  if (given === undefined) return undefined;
  const churn = { allocations: given.count, since: timeText(given.sinceMs) };
  const ageMs = nowMs - given.sinceMs;
  if (ageMs < leastForRateMs) return churn;
  return { ...churn, perHour: Math.round((given.count * 36_000_000) / ageMs) / 10 };
}

/** Less time tells nothing of an hour. */
const leastForRateMs = 60_000;

function reportView(report: Report, nowMs: number) {
  return {
    pools: report.pools.map((entry) => {
      const { pool, tally, total, oldest, earlierBoot } = entry;
      const churn = churnOf(entry, nowMs);
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
    "ALLOCATIONS",
  ];
  const rows = report.pools.map((entry) => {
    const { pool, tally, total, oldest } = entry;
    const churn = churnOf(entry, nowMs);
    return [
      ...[pool.network, pool.range],
      ...[total, tally.allocated, tally.releasing, tally.cooling].map(String),
      pool.from === "store" ? "?" : String(tally.excluded),
      ...[String(tally.free), `${percent(entry)} %`],
      oldest === undefined ? "-" : formatAge(nowMs - oldest.allocatedAtMs),
      churn === undefined
        ? "-"
        : `${churn.allocations}${churn.perHour === undefined ? "" : ` (${churn.perHour} per hour)`}`,
    ];
  });
  const earlier = report.pools.reduce((sum, { earlierBoot }) => sum + earlierBoot, 0);
  return [
    formatTable([header, ...rows]),
    report.outside === 0 ? "" : `${report.outside} more in no range shown here\n`,
    earlier === 0 ? "" : `${earlier} allocated before the last boot\n`,
  ].join("");
}
