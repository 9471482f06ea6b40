import type { CniRequest } from "../shared/cni/dispatch.ts";
import type { Verb } from "../shared/cni/environment.ts";
import { parseResult, requireAddress } from "../shared/cni/result.ts";
import type { CniResult } from "../shared/cni/types.ts";
import { type CniVersion, parseVersion } from "../shared/cni/versions.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { paths } from "../shared/os/paths.ts";
import { isWindows } from "../shared/os/platform.ts";
import { reasonOf } from "../shared/reason.ts";
import { parseJson } from "../shared/schema/json.ts";
import { Fields, isObject, show } from "../shared/schema/json-fields.ts";

/** How much of a delegated plugin's stderr is passed on to the runtime's log. */
export const maxDelegateLogBytes = 64 * 1024;

/** How much of its stderr goes into the details of an error. */
const maxDetailChars = 500;

/**
 * Runs the IPAM plugin `type` as the specification has it (1.1.0, section 4 "Plugin Delegation"):
 * the complete configuration on its stdin, our whole environment with the verb to run, its stderr
 * passed on.
 * @returns its stdout
 * @throws {CniError} its own error with its own code; 4, 5, 11 or 101 where it has none
 */
export async function delegate(request: CniRequest, type: string, verb: Verb, timeoutMs: number): Promise<string> {
  const file = await find(request.env.path, type);
  const what = `Cannot run ${verb} of the IPAM plugin "${type}"`;
  const child = start(file, request, verb, what);
  const out = collect(child.stdout, limits.messageBytes);
  const err = collect(child.stderr, maxDelegateLogBytes);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), timeoutMs);
  });
  // The output ends when the last process that holds it has ended, which may be a child that outlives the plugin.
  const ended = await Promise.race([Promise.all([child.exited, out.ended, err.ended]), timeout]);
  clearTimeout(timer);
  if (ended === "late") child.kill("SIGKILL");
  const said = err.text().trimEnd();
  if (said !== "") request.io.log(said);
  if (ended === "late") {
    const message = `${what}: it has not ended after ${timeoutMs} ms`;
    throw new CniError(CniCode.tryAgainLater, message, { details: said.slice(-maxDetailChars) });
  }
  const text = out.text();
  if (child.exitCode === 0) return text;
  throw errorOf(text, type) ?? noError(what, child, text, said);
}

type Child = Bun.Subprocess<Uint8Array, "pipe", "pipe">;

function start(file: string, request: CniRequest, verb: Verb, what: string): Child {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.io.env)) if (value !== undefined) env[name] = value;
  env["CNI_COMMAND"] = verb;
  try {
    const stdin = new TextEncoder().encode(request.text);
    return Bun.spawn([file], { env, stdin, stdout: "pipe", stderr: "pipe" });
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(CniCode.io, `${what}: "${file}" does not start, wanted an executable`, { cause, details: is });
  }
}

/**
 * The first directory of CNI_PATH that holds it. Relative directories are skipped: they would depend on the runtime's
 * working directory.
 */
async function find(path: string, type: string): Promise<string> {
  const directories = path.split(paths.pathListSeparator).filter(paths.isAbsolute);
  for (const directory of directories) {
    for (const suffix of isWindows ? ["", ".exe"] : [""]) {
      const file = `${directory}${paths.directorySeparator}${type}${suffix}`;
      if (await Bun.file(file).exists()) return file;
    }
  }
  throw new CniError(
    CniCode.invalidEnvironment,
    `Cannot run the IPAM plugin "${type}": CNI_PATH is ${show(path)}, wanted absolute directories of which one holds it`,
  );
}

interface Collected {
  readonly ended: Promise<void>;
  /** What has come so far, as text. */
  text(): string;
}

/** Reads to the end and keeps the first `maxBytes`, so that a plugin that writes more does not block on a full pipe. */
function collect(stream: ReadableStream<Uint8Array>, maxBytes: number): Collected {
  const decoder = new TextDecoder();
  let text = "";
  let kept = 0;
  const read = async (): Promise<void> => {
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (kept < maxBytes) text += decoder.decode(value.subarray(0, maxBytes - kept), { stream: true });
      kept += value.length;
    }
  };
  return { ended: read(), text: () => text };
}

/** The error object of a plugin; one of a version before 0.3.0 has no `details`. */
function errorOf(stdout: string, type: string): CniError | undefined {
  let value: unknown;
  try {
    value = parseJson(stdout);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { code, msg, details } = value;
  if (typeof code !== "number" || !Number.isInteger(code) || typeof msg !== "string") return undefined;
  const from = `reported by the IPAM plugin "${type}"`;
  const more = typeof details === "string" && details !== "" ? `${details} (${from})` : from;
  return new CniError(code, msg, { details: more });
}

function noError(what: string, child: Child, stdout: string, stderr: string): CniError {
  const end = child.signalCode === null ? `with status ${child.exitCode}` : `by ${child.signalCode}`;
  const message = `${what}: it ended ${end} and wrote ${show(stdout)} to standard output, wanted a CNI error`;
  return new CniError(CniCode.ipamFailure, message, { details: stderr.slice(-maxDetailChars) });
}

/**
 * The result of a delegated ADD. An older plugin may answer in an older version than it was asked in, and then names
 * it; without a known `cniVersion` the configuration's counts.
 * @throws {CniError} code 6 for what is no result, 101 for one without an address
 */
export function parseDelegateResult(text: string, type: string, version: CniVersion): CniResult {
  const fields = Fields.parse(text, `result of the IPAM plugin "${type}"`, CniCode.decode);
  const own = fields.string("cniVersion");
  const result = parseResult(fields, own === undefined || own === "" ? version : (parseVersion(own) ?? version));
  requireAddress(result, type);
  return result;
}
