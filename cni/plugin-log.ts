import type { CniRequest } from "../shared/cni/dispatch.ts";
import { createLogger, type Logger } from "../shared/log.ts";
import type { Fields } from "../shared/schema/json-fields.ts";
import { logFileOf, logLevelOf } from "./net-conf.ts";

export interface PluginLog {
  readonly log: Logger;
  /** Whether debug lines are written at all, so that callers need not compute what only they need. */
  readonly debugging: boolean;
}

/**
 * The log of one call, as `logFile` and `logLevel` say. Without a file it goes to stderr, which runtimes copy into
 * their own log; by default only errors. With a file, errors go to both. Never fails: the verb reports mistakes in the
 * two keys, and a log that cannot be written must not cost a pod its network.
 */
export async function openPluginLog(request: CniRequest): Promise<PluginLog> {
  const { conf, io } = request;
  const { level, file } = conf.derive(choiceOf);
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

const choiceOf = (conf: Fields) => ({
  level: unlessWrong(() => logLevelOf(conf)),
  file: unlessWrong(() => logFileOf(conf)),
});

function unlessWrong<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
