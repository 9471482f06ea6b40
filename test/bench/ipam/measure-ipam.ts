import type { Setting } from "../setting.ts";
import { measurePool, type PoolFigures } from "./measure-pool.ts";
import { measureWriters, type WriterFigures } from "./measure-writers.ts";
import { nameOf, type Pool, poolsUpTo } from "./pool.ts";

export interface IpamSetting extends Pick<Setting, "dist" | "peers" | "launcher" | "scratch" | "rounds" | "progress"> {
  /** Calls of each kind within a process. */
  readonly calls: number;
  /** How many processes write at once. */
  readonly writers: readonly number[];
  /** Standing leases of the largest pool, and of the largest that host-local is measured at too. */
  readonly maxLeases: number;
  readonly maxLeasesWithPeer: number;
}

export interface IpamFigures {
  readonly pools: readonly PoolFigures[];
  readonly writers: readonly WriterFigures[];
}

/** What the allocator costs: by how many leases stand and how they lie, and by how many processes write at once. */
export async function measureIpam(setting: IpamSetting): Promise<IpamFigures> {
  const pools: PoolFigures[] = [];
  for (const pool of poolsUpTo(setting.maxLeases, setting.maxLeasesWithPeer)) {
    // What host-local takes at many leases makes up for fewer rounds.
    const rounds = pool.withPeer && pool.leases > 1000 ? Math.ceil(setting.rounds / 3) : setting.rounds;
    pools.push(await measurePool({ ...setting, rounds }, pool, setting.calls));
  }
  const pool: Pool = {
    subnet: "10.128.0.0/12",
    leases: Math.min(20_000, setting.maxLeases),
    shape: "scattered",
    withPeer: false,
  };
  const writers: WriterFigures[] = [];
  for (const count of setting.writers) {
    setting.progress(`${nameOf(pool)}: ${count} writers at once`);
    writers.push(await measureWriters(setting.scratch, pool, count, setting.calls));
  }
  return { pools, writers };
}
