import { budgetOfAdd } from "../budgets.ts";
import { fillHostLocal } from "../host-local-dir.ts";
import { confFor, fillOurs, network, type Pool } from "../ipam/pool.ts";
import { compileLeast, openLeastDatabase } from "../least/compile-least.ts";
import { readFromEndToEnd } from "../page-cache.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { compare, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";

/** Cold ADD of `pipette-ipam`, and of the least program on SQLite, against host-local, with so many leases already in the pool. */
export async function measureAllocate(setting: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  const least = await compileLeast(setting.scratch);
  for (const leases of setting.fills) {
    setting.progress(`ADD with ${leases} leases in the pool`);
    const oursDir = `${setting.scratch}/ours-${leases}`;
    const peerDir = `${setting.scratch}/peer-${leases}`;
    const pool: Pool = { subnet: "10.128.0.0/12", leases, shape: "packed", withPeer: true };
    await fillOurs(oursDir, pool);
    fillHostLocal(peerDir, network, pool.subnet, leases);
    const add =
      (executable: string, conf: string, pod = "new") =>
      (round: number): number =>
        runTimed({ executable, env: verbEnv("ADD", `${pod}-${round}`, "/var/run/netns/bench", setting.peers), conf })
          .ms;
    const executable = `${setting.dist}/pipette-ipam`;
    const conf = confFor("pipette-ipam", pool, oursDir);
    const peerConf = confFor("host-local", pool, peerDir);
    const common = {
      rounds: leases > 1000 ? Math.ceil(setting.rounds / 3) : setting.rounds,
      peerName: "host-local ADD",
    };
    await readFromEndToEnd([executable, least, `${setting.peers}/host-local`]);
    rows.push(
      await compare({
        ...common,
        measure: `pipette-ipam ADD, ${leases} leases`,
        ...budgetOfAdd(leases),
        ours: add(executable, conf),
        peer: add(`${setting.peers}/host-local`, peerConf),
      }),
    );
    using _open = openLeastDatabase(oursDir);
    rows.push(
      await compare({
        ...common,
        measure: `  the least Bun can do, ${leases} leases`,
        ours: add(least, conf),
        peer: add(`${setting.peers}/host-local`, peerConf, "least"),
      }),
    );
  }
  return rows;
}
