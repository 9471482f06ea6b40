import { rmSync, statSync } from "node:fs";
import { fillHostLocal } from "../host-local-dir.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import type { Setting } from "../setting.ts";
import { type Summary, summarize } from "../stats.ts";
import { confFor, fillOurs, nameOf, network, type Pool } from "./pool.ts";
import { startWorker } from "./worker-process.ts";

/** What an ADD and the DEL after it take, from exec to exit, in milliseconds. */
export interface Cold {
  readonly add: Summary;
  readonly del: Summary;
}

/** Of one process that keeps the database open, in microseconds. */
export interface Warm {
  readonly add: Summary;
  readonly check: Summary;
  readonly del: Summary;
  readonly allocationsPerSecond: number;
  /** Of the whole process, Bun's share of about 40 included. */
  readonly residentMb: number;
}

export interface PoolFigures {
  readonly pool: string;
  readonly leases: number;
  readonly cold: Cold;
  readonly hostLocal?: Cold;
  readonly warm: Warm;
  /** Of the database when it was filled; absent without leases. */
  readonly bytesPerLease?: number;
}

type PoolSetting = Pick<Setting, "dist" | "peers" | "launcher" | "scratch" | "rounds" | "progress">;

export async function measurePool(setting: PoolSetting, pool: Pool, calls: number): Promise<PoolFigures> {
  const ours = `${setting.scratch}/ours`;
  const peer = `${setting.scratch}/host-local`;
  setting.progress(`${nameOf(pool)}: filling`);
  await fillOurs(ours, pool);
  if (pool.withPeer) fillHostLocal(peer, network, pool.subnet, pool.leases);
  const { size } = statSync(`${ours}/leases.db`);
  try {
    setting.progress(`${nameOf(pool)}: cold calls`);
    const [cold, hostLocal] = coldCalls(setting, [
      [`${setting.dist}/pipette-ipam`, confFor("pipette-ipam", pool, ours)],
      ...(pool.withPeer ? [[`${setting.peers}/host-local`, confFor("host-local", pool, peer)] as const] : []),
    ]);
    if (cold === undefined) throw new Error("Cannot measure a pool: nothing was called");
    setting.progress(`${nameOf(pool)}: calls within a process`);
    return {
      pool: nameOf(pool),
      leases: pool.leases,
      cold,
      ...(hostLocal === undefined ? {} : { hostLocal }),
      warm: await warmCalls(ours, pool, calls),
      ...(pool.leases === 0 ? {} : { bytesPerLease: size / pool.leases }),
    };
  } finally {
    rmSync(ours, { recursive: true, force: true });
    rmSync(peer, { recursive: true, force: true });
  }
}

type Side = readonly [executable: string, conf: string];

/** Both sides in turn, and who goes first alternates; the first round warms up and does not count. */
function coldCalls({ rounds, peers, launcher }: PoolSetting, sides: readonly Side[]): readonly Cold[] {
  const times = sides.map(() => ({ add: [] as number[], del: [] as number[] }));
  for (let round = 0; round <= rounds; round++) {
    const order = [...sides.keys()];
    for (const i of round % 2 === 0 ? order : order.reverse()) {
      const [executable, conf] = sides[i]!;
      const call = (verb: string): number =>
        runTimed(launcher, { executable, conf, env: verbEnv(verb, `new-${round}`, "/var/run/netns/bench", peers) }).ms;
      const [add, del] = [call("ADD"), call("DEL")];
      if (round === 0) continue;
      times[i]!.add.push(add);
      times[i]!.del.push(del);
    }
  }
  return times.map(({ add, del }) => ({ add: summarize(add), del: summarize(del) }));
}

async function warmCalls(dataDir: string, pool: Pool, calls: number): Promise<Warm> {
  const worked = await startWorker({ dataDir, pool, name: "warm", calls, alsoOthers: true, startAtMs: 0 });
  const seconds = worked.add.reduce((sum, micros) => sum + micros, 0) / 1e6;
  return {
    add: summarize(worked.add),
    check: summarize(worked.check),
    del: summarize(worked.del),
    allocationsPerSecond: calls / seconds,
    residentMb: worked.residentMb,
  };
}
