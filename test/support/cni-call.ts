import { spawn } from "node:child_process";
import { isInFront, withSmallProgram } from "./in-front.ts";

/** One verb of one CNI executable, as a runtime starts it. */
export interface CniCall {
  /** Path of the executable. */
  readonly executable: string;
  /** The `CNI_*` variables; `PATH` is added where it is missing. */
  readonly env: Readonly<Record<string, string>>;
  /** The network configuration: goes to stdin as JSON. */
  readonly conf: unknown;
  /** What stands before the executable on the command line, to start it somewhere else: `["nsenter", …]`. */
  readonly prefix?: readonly string[];
}

export interface CniEnded {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** From start to end. */
  readonly ms: number;
}

/** A call that runs. */
export interface Running {
  readonly pid: number;
  readonly ended: Promise<CniEnded>;
}

/**
 * Starts a command line with this environment and stdin, without blocking the calling process. A call of our plugins
 * goes through the small program where that stands in front of them.
 */
export function startCommand(
  whole: readonly string[],
  variables: Readonly<Record<string, string>>,
  stdin: string,
  cwd = "/",
): Running {
  const given = { command: whole, env: variables };
  const { command, env } = isInFront ? withSmallProgram(given, stdin) : given;
  const [file = "", ...args] = command;
  const { promise, resolve, reject } = Promise.withResolvers<CniEnded>();
  const from = performance.now();
  const child = spawn(file, args, { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env }, cwd });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  // One who does not read all of its stdin ends before it is written.
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  child.on("error", reject);
  child.on("close", (status) => resolve({ status, stdout, stderr, ms: performance.now() - from }));
  return { pid: child.pid ?? 0, ended: promise };
}

/** Runs one verb to its end, whatever that is. */
export function runPlugin({ prefix = [], executable, env, conf }: CniCall): Promise<CniEnded> {
  return startCommand([...prefix, executable], env, JSON.stringify(conf)).ended;
}

/** Runs one verb that must succeed. @throws with what the plugin said */
export async function callPlugin(call: CniCall): Promise<CniEnded> {
  const ended = await runPlugin(call);
  if (ended.status === 0) return ended;
  const verb = call.env["CNI_COMMAND"] ?? "";
  throw new Error(`Cannot run ${verb}: status ${ended.status}, ${ended.stdout}${ended.stderr}, wanted success`);
}
