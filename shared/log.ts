import { printable } from "./printable.ts";
import { isObject } from "./schema/json-fields.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

export type LogFields = Readonly<Record<string, unknown>>;

/** JSON lines, safe on a terminal too: `{"time":…,"level":…,"message":…,…}`. Where they go is the caller's. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same logger with these fields on every line, such as the id of a request; a function makes them for the first. */
  with(fields: LogFields | (() => LogFields)): Logger;
}

/** @param level what is written; a function where that changes */
export function createLogger(
  level: LogLevel | (() => LogLevel),
  write: (line: string) => void,
  base: LogFields | (() => LogFields) = {},
): Logger {
  let made = typeof base === "function" ? undefined : base;
  const fixed = (): LogFields => (made ??= typeof base === "function" ? base() : base);
  const emit = (at: LogLevel, message: string, fields: LogFields = {}): void => {
    if (logLevels.indexOf(at) < logLevels.indexOf(typeof level === "function" ? level() : level)) return;
    write(printable(JSON.stringify({ time: new Date().toISOString(), level: at, message, ...fixed(), ...fields })));
  };
  return {
    debug: (message, fields) => emit("debug", message, fields),
    info: (message, fields) => emit("info", message, fields),
    warn: (message, fields) => emit("warn", message, fields),
    error: (message, fields) => emit("error", message, fields),
    with: (fields) =>
      createLogger(level, write, () => ({ ...fixed(), ...(typeof fields === "function" ? fields() : fields) })),
  };
}

/**
 * Configuration keys whose values hold no secret, each between blanks; all other values are logged as `"…"`. A string,
 * because a set would be built at every start and is only needed for debug lines.
 */
const harmlessKeys =
  " cniversion name type ipam ranges subnet rangestart rangeend gateway routes dst gw datadir mtu bridge dns nameservers search domain capabilities logfile loglevel socket timeoutms ";

/** Far deeper than any configuration; deeper nesting would overflow the stack and fail the call. */
const maxLevels = 32;

/** A configuration for the log: known keys with their values, of the others the name only. */
export function redactConf(value: unknown, levels = maxLevels): unknown {
  if (typeof value === "object" && value !== null && levels === 0) return "…";
  if (Array.isArray(value)) return value.map((inner) => redactConf(inner, levels - 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      harmlessKeys.includes(` ${key.toLowerCase()} `) ? redactConf(inner, levels - 1) : "…",
    ]),
  );
}

const harmlessArgs = " IgnoreUnknown IP K8S_POD_NAMESPACE K8S_POD_NAME K8S_POD_UID K8S_POD_INFRA_CONTAINER_ID ";

/** CNI_ARGS for the log: the keys that Kubernetes defines with their values, of the others the name only. */
export function redactArgs(args: string): string {
  return args
    .split(";")
    .map((pair) => {
      const key = pair.slice(0, Math.max(0, pair.indexOf("=")));
      return key !== "" && harmlessArgs.includes(` ${key} `) ? pair : `${key}=…`;
    })
    .join(";");
}
