import type { CniRequest } from "../shared/cni/dispatch.ts";
import { createLogger, type Logger } from "../shared/log.ts";
import { logFileOf, logLevelOf } from "./net-conf.ts";

export interface PluginLog {
  readonly log: Logger;
  /** Whether debug lines go anywhere: what only they need is not made otherwise. */
  readonly debugging: boolean;
}

/**
 * The log of one call, as `logFile` and `logLevel` have it. Without a file it goes to stderr, from
 * which runtimes make lines of their own log; by default only errors. With one, errors go to both.
 * Never fails: what is wrong with the two keys is for the verb to say, and a log that cannot be
 * written is no reason to leave a pod without network.
 */
export async function openPluginLog(request: CniRequest): Promise<PluginLog> {
  const { conf, io } = request;
  const level = unlessWrong(() => logLevelOf(conf));
  const file = unlessWrong(() => logFileOf(conf));
  const debugging = level === "debug";
  if (file === undefined || file === "") return { log: createLogger(level ?? "error", io.log), debugging };
  const { appendToLog } = await import("../shared/os/log-file.ts");
  const toFile = createLogger(level ?? "info", (line) => {
    const problem = appendToLog(file, line);
    if (problem !== undefined) io.log(problem);
  });
  return { log: withErrorsOn(toFile, createLogger("error", io.log)), debugging };
}

function withErrorsOn(log: Logger, errors: Logger): Logger {
  const both = { ...log };
  both.error = (message, fields) => {
    log.error(message, fields);
    errors.error(message, fields);
  };
  both.with = (fields) => withErrorsOn(log.with(fields), errors.with(fields));
  return both;
}

function unlessWrong<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
