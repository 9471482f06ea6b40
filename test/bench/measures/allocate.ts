import { budgetOfAdd } from "../budgets.ts";
import { fillHostLocal } from "../host-local-dir.ts";
import { confFor, fillOurs, network, type Pool } from "../ipam/pool.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { compare, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";

/** Cold ADD of `pipette-ipam` against host-local, with so many leases already in the pool. */
export async function measureAllocate(setting: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  for (const leases of setting.fills) {
    setting.progress(`ADD with ${leases} leases in the pool`);
    const oursDir = `${setting.scratch}/ours-${leases}`;
    const peerDir = `${setting.scratch}/peer-${leases}`;
    const pool: Pool = { subnet: "10.128.0.0/12", leases, shape: "packed", withPeer: true };
    await fillOurs(oursDir, pool);
    fillHostLocal(peerDir, network, pool.subnet, leases);
    const add =
      (executable: string, conf: string) =>
      (round: number): number =>
        runTimed({ executable, env: verbEnv("ADD", `new-${round}`, "/var/run/netns/bench", setting.peers), conf }).ms;
    const row = await compare({
      measure: `pipette-ipam ADD, ${leases} leases`,
      ...budgetOfAdd(leases),
      rounds: leases > 1000 ? Math.ceil(setting.rounds / 3) : setting.rounds,
      ours: add(`${setting.dist}/pipette-ipam`, confFor("pipette-ipam", pool, oursDir)),
      peer: add(`${setting.peers}/host-local`, confFor("host-local", pool, peerDir)),
      peerName: "host-local ADD",
    });
    rows.push(row);
  }
  return rows;
}
