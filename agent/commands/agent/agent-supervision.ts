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

/** The agent's own log file, where there is no journal: days of calls on a busy node; as much again is kept from before. */
export const agentLogFileBytes = 20 * 1024 * 1024;
/** A service that has said that it stopped ends within this time, also where one of its threads hangs in a call. */
const serviceEndMs = 100;

/**
 * The same terminal, but what goes to stderr goes into this file: a service of Windows has no stderr that anybody sees.
 * Where the file cannot be written, stderr gets both.
 */
export async function logInto(file: string, io: TerminalIo): Promise<TerminalIo> {
  // What is wrong with it the first line says.
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(() => undefined);
  const append = (line: string): void => {
    const problem = appendToLog(file, line, agentLogFileBytes);
    if (problem !== undefined) io.stderr(`${line}\n${problem}\n`);
  };
  // A sentence for a person, such as what is wrong with the configuration, gets its time here.
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
 * @throws {CniError} code 5 where nobody has
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
      // Whatever still hangs in a call must not keep the next one from what this process holds; with nothing else to do it
      // would wait for that, so the timer has to count.
      setTimeout(() => process.exit(status), serviceEndMs);
    }
  } catch (caught) {
    io.stderr(`${CniError.from(caught, "run as a service").message}\n`);
    return exitStatus.failed;
  }
}
