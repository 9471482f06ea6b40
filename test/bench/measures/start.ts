import { budgets } from "../budgets.ts";
import { compileFront } from "../front.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { compareInBothStates, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";

/** The price of being started at all: VERSION does nothing else. */
export async function measureStart({ dist, peers, scratch, rounds, launcher, progress }: Setting): Promise<Row[]> {
  progress("exec to exit, VERSION");
  const wholeProgram = `${dist}/pipette`;
  const peer = `${peers}/host-local`;
  const front = await compileFront(`${scratch}/front-start`, dist, { wholeProgram });
  const version = (executable: string) => (): number =>
    runTimed(launcher, { executable, env: verbEnv("VERSION", "", "", ""), conf: '{"cniVersion":"1.0.0"}' }).ms;
  const common = { rounds, peer: version(peer), peerName: "host-local VERSION" };
  return [
    ...(await compareInBothStates({
      ...common,
      measure: "exec to exit, VERSION",
      ...budgets.start,
      ours: version(front.pipette),
      executables: [front.pipette, peer],
    })),
    ...(await compareInBothStates({
      ...common,
      measure: "  the whole program",
      ...budgets.wholeStart,
      heldIn: ["read"],
      ours: version(wholeProgram),
      executables: [wholeProgram, peer],
    })),
  ];
}
