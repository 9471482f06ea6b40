import type { CniRequest, PluginIo } from "../shared/cni/dispatch.ts";
import { createLogger, type Logger, type LogLevel } from "../shared/log.ts";
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
export function openPluginLog({ conf, io }: CniRequest): PluginLog | Promise<PluginLog> {
  const { level, file } = conf.derive(choiceOf);
  if (file !== undefined && file !== "") return openLogFile(file, level, io);
  return { log: createLogger(level ?? "error", io.log), debugging: level === "debug" };
}

async function openLogFile(file: string, level: LogLevel | undefined, io: PluginIo): Promise<PluginLog> {
  // Loaded only where a file is configured.
  const { appendToLog } = await import("../shared/os/log-file.ts");
  const toFile = createLogger(level ?? "info", (line) => {
    const problem = appendToLog(file, line);
    if (problem !== undefined) io.log(problem);
  });
  return { log: withErrorsOn(toFile, createLogger("error", io.log)), debugging: level === "debug" };
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
