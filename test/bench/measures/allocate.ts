import { AgentProcess } from "../../support/agent-process.ts";
import { budgetOfAdd, budgets } from "../budgets.ts";
import { compileFront } from "../front.ts";
import { fillHostLocal } from "../host-local-dir.ts";
import { confFor, fillOurs, network, type Pool } from "../ipam/pool.ts";
import { compileLeast, openLeastDatabase } from "../least/compile-least.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { compareInBothStates, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";

/**
 * Cold ADD of `pipette-ipam` against host-local: by itself with so many leases already in the pool, beside the least
 * program on SQLite, and by the allocator's service.
 */
export async function measureAllocate(setting: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  const least = await compileLeast(setting.scratch);
  const wholeProgram = `${setting.dist}/pipette`;
  const { ipam } = await compileFront(`${setting.scratch}/front-alone`, setting.dist, { wholeProgram });
  for (const leases of setting.fills) {
    setting.progress(`ADD with ${leases} leases in the pool`);
    const { dir, pool, add, common } = await fill(setting, "alone", leases);
    const conf = confFor("pipette-ipam", pool, dir);
    const alone = await compareInBothStates({
      ...common,
      measure: `pipette-ipam ADD, ${leases} leases`,
      ...budgetOfAdd(leases),
      heldIn: ["read"],
      ours: add(ipam, conf),
      executables: [ipam, wholeProgram, common.host],
    });
    using _open = openLeastDatabase(dir);
    const unheld = await compareInBothStates({
      ...common,
      measure: `  the least Bun can do, ${leases} leases`,
      ours: add(least, conf),
      executables: [least, common.host],
    });
    rows.push(...alone, ...unheld);
  }
  return [...rows, ...(await measureService(setting))];
}

async function measureService(setting: Setting): Promise<Row[]> {
  setting.progress("ADD by the allocator's service");
  const { dist, scratch } = setting;
  const { dir, pool, add, common } = await fill(setting, "service", 0);
  const ipamSocket = `${scratch}/ipam.sock`;
  const wholeProgram = `${dist}/pipette`;
  const service = new AgentProcess([wholeProgram, "ipam", "serve", "--socket", ipamSocket, "--data-dir", dir]);
  try {
    await service.logged(({ message }) => message === "ready");
    const { ipam } = await compileFront(`${scratch}/front-service`, dist, { ipamSocket, wholeProgram });
    return await compareInBothStates({
      ...common,
      measure: "pipette-ipam ADD, by a service",
      ...budgets.addByService,
      ours: add(ipam, confFor("pipette-ipam", pool, dir)),
      executables: [ipam, common.host],
    });
  } finally {
    await service.end();
  }
}

/** A pool of either side with so many leases, and how an ADD is called there. */
async function fill({ scratch, peers, rounds, launcher }: Setting, name: string, leases: number) {
  const dir = `${scratch}/ours-${name}-${leases}`;
  const peerDir = `${scratch}/peer-${name}-${leases}`;
  const pool: Pool = { subnet: "10.128.0.0/12", leases, shape: "packed", withPeer: true };
  await fillOurs(dir, pool);
  fillHostLocal(peerDir, network, pool.subnet, leases);
  let calls = 0;
  const add = (executable: string, conf: string) => (): number => {
    const env = verbEnv("ADD", `new-${calls++}`, "/var/run/netns/bench", peers);
    return runTimed(launcher, { executable, env, conf }).ms;
  };
  const host = `${peers}/host-local`;
  const common = {
    rounds: leases > 1000 ? Math.ceil(rounds / 3) : rounds,
    peer: add(host, confFor("host-local", pool, peerDir)),
    peerName: "host-local ADD",
    host,
  };
  return { dir, pool, add, common };
}
