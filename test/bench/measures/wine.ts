import { join } from "node:path";
import { compileSmallProgram } from "../../../build/forward.ts";
import { compileForWindows } from "../../windows/wine/c-program.ts";
import { WinePrefix } from "../../windows/wine/prefix.ts";
import { wineCommand, wineEnvironment } from "../../windows/wine/wine-server.ts";
import { budgets } from "../budgets.ts";
import { runLaunched } from "../plugin-process.ts";
import { compareInBothStates, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";

/**
 * VERSION of the small program of Windows under Wine, against a C program that does nothing: Wine's start is most of both.
 * @param runDirectory where a Windows is made, unless one is there
 */
export async function measureWine(
  { scratch, rounds, launcher, progress }: Pick<Setting, "scratch" | "rounds" | "launcher" | "progress">,
  runDirectory = join(scratch, "wine"),
): Promise<Row[]> {
  progress("VERSION under Wine");
  await using prefix = await WinePrefix.make(runDirectory);
  const [ours, empty] = [join(scratch, "pipette.exe"), join(scratch, "empty.exe")];
  await compileSmallProgram({ system: "windows", outfile: ours, buildId: "00".repeat(16) });
  await compileForWindows("../bench/least/empty.c", empty);
  const env = { ...wineEnvironment(prefix.directory), CNI_COMMAND: "VERSION" };
  const version = (executable: string) => (): number =>
    runLaunched(launcher, { program: [...wineCommand, executable], env, stdin: '{"cniVersion":"1.0.0"}' }).ms;
  return await compareInBothStates({
    measure: "VERSION under Wine",
    ...budgets.wineStart,
    rounds,
    ours: version(ours),
    peer: version(empty),
    peerName: "an empty C program",
    executables: [ours, empty],
  });
}
