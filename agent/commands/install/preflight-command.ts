import { paths } from "../../../shared/os/paths.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { readConfig } from "./config-file.ts";
import { type PreflightWish, preflight } from "./preflight.ts";

/**
 * `pipette install --check`: whether this machine has what an installation needs.
 * @returns exit status: failed where something is missing
 */
export async function runPreflight(
  { configFile, ...wish }: PreflightWish & { readonly configFile: string },
  json: boolean,
  io: TerminalIo,
): Promise<number> {
  if (!isWindows) {
    io.stderr(
      'Cannot check the machine: this is Linux, wanted Windows; here "install --dry-run" says what is missing\n',
    );
    return exitStatus.wrongArguments;
  }
  const config = await readConfig(configFile);
  const hns = config?.networks[0]?.hns;
  const { openHostRunner } = await import("../../datapath/hns/windows-host/powershell.windows.ts");
  const { formatIp } = await import("../../../shared/net/ip.ts");
  const checks = await preflight(openHostRunner(), {
    ...wish,
    nodeAddress: wish.nodeAddress ?? (hns === undefined ? undefined : formatIp(hns.nodeAddress)),
    dataDir: config?.dataDir ?? wish.dataDir ?? paths.dataDir,
  });
  if (json) io.stdout(formatJson({ checks }));
  else {
    const rows = checks.map(({ what, verdict, is, todo }) => [verdict, what, is, todo].map(printable));
    io.stdout(formatTable([["VERDICT", "WHAT", "IS", "DO"], ...rows]));
  }
  return checks.some(({ verdict }) => verdict === "missing") ? exitStatus.failed : exitStatus.done;
}
