import { budgets } from "../budgets.ts";
import { readFromEndToEnd } from "../page-cache.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { compare, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";

/** The price of being started at all: VERSION does nothing else. */
export async function measureStart(setting: Setting): Promise<Row[]> {
  setting.progress("exec to exit, VERSION");
  await readFromEndToEnd([`${setting.dist}/pipette`, `${setting.peers}/host-local`]);
  const version = (executable: string) => (): number =>
    runTimed({ executable, env: verbEnv("VERSION", "", "", ""), conf: '{"cniVersion":"1.0.0"}' }).ms;
  const row = await compare({
    measure: "exec to exit, VERSION",
    ...budgets.start,
    rounds: setting.rounds,
    ours: version(`${setting.dist}/pipette`),
    peer: version(`${setting.peers}/host-local`),
    peerName: "host-local VERSION",
  });
  return [row];
}
