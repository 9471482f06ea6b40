import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { createLogger } from "../../../shared/log.ts";
import { appendToLog } from "../../../shared/os/log-file.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import type { Supervisor } from "../../../shared/server/daemon.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { serviceName } from "../../platform/agent-service.ts";

/**
 * The size of the agent's own log file, for systems without a journal: days of calls on a busy node. One older file of
 * the same size is kept.
 */
export const agentLogFileBytes = 20 * 1024 * 1024;
/** A stopped service's process ends within this time, also if one of its threads hangs in a call. */
const serviceEndMs = 100;

/**
 * The same terminal with stderr redirected to this file, because nobody sees the stderr of a Windows service. If the
 * file cannot be written, stderr gets the text and the reason.
 */
export async function logInto(file: string, io: TerminalIo): Promise<TerminalIo> {
  // A failure is reported with the first line of the log.
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(() => undefined);
  const append = (line: string): void => {
    const problem = appendToLog(file, line, agentLogFileBytes);
    if (problem !== undefined) io.stderr(`${line}\n${problem}\n`);
  };
  // Sentences for people, such as faults of the configuration, get a timestamp here.
  const sentences = createLogger("info", append);
  const stderr = (text: string): void => {
    for (const line of text.split("\n").filter((part) => part !== ""))
      if (line.startsWith("{")) append(line);
      else sentences.error(line);
  };
  return { ...io, stderr, stderrIsTerminal: false };
}

/**
 * Runs as the service that Windows' service control manager has started, and tells it how that ended.
 * @throws {CniError} code 5 if it was not started by it
 */
export async function asService(io: TerminalIo, run: (supervisor: Supervisor) => Promise<number>): Promise<number> {
  if (!isWindows)
    throw new CniError(CniCode.io, "Cannot run as a service: this is not Windows, wanted the agent without --service");
  try {
    const { enterService } = await import("../../platform/windows-service/mod.ts");
    const host = await enterService(serviceName);
    let status: number = exitStatus.failed;
    try {
      status = await run(host);
      return status;
    } finally {
      host.stopped(status);
      // A hanging call must not keep this process, and the locks that it holds, from ending; so the timer ends the
      // process.
      setTimeout(() => process.exit(status), serviceEndMs);
    }
  } catch (caught) {
    io.stderr(`${CniError.from(caught, "run as a service").message}\n`);
    return exitStatus.failed;
  }
}
