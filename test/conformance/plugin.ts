import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type CniEnded, type Running, startCommand } from "../support/cni-call.ts";
import { isCompiled } from "../support/own-program.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const executables = join(root, "dist", "linux-x64");
/** Where Debian's containernetworking-plugins lie. */
export const debianPlugins = "/usr/lib/cni";

/** Compiles what is tested, where the whole run has not done so; quick where nothing has changed. For a `beforeAll`. */
export function compileExecutables(): void {
  if (isCompiled) return;
  const built = spawnSync(process.execPath, ["run", join(root, "build", "compile.ts"), "linux"], { encoding: "utf8" });
  if (built.status !== 0) throw new Error(`Cannot compile the executable under test: ${built.stdout}${built.stderr}`);
}

/** A directory that is gone when its scope ends. */
export function scratch(): { readonly path: string; files(): readonly string[] } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "pt-cf-"));
  return {
    path,
    files: () => readdirSync(path, { recursive: true }).map(String).sort(),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

export interface Started {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** An object goes as JSON. */
  readonly stdin?: unknown;
  readonly executable?: "pipette" | "pipette-ipam";
  readonly cwd?: string;
  /** Shell redirections such as `<&-` or `>/dev/full`, in place of the pipes. */
  readonly redirect?: string;
}

/** Starts one verb the way a runtime does, without blocking this process: the scripted agent lives in it. */
export function start(started: Started): Running {
  const file = join(executables, started.executable ?? "pipette");
  const command = started.redirect === undefined ? [file] : ["/bin/sh", "-c", `exec "$0" ${started.redirect}`, file];
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(started.env ?? {})) if (value !== undefined) env[name] = value;
  const { stdin = "" } = started;
  return startCommand(command, env, typeof stdin === "string" ? stdin : JSON.stringify(stdin), started.cwd);
}

/** As the runtime does it when its own deadline has passed. */
export function kill(running: Running): void {
  process.kill(running.pid, "SIGKILL");
}

/** Runs one verb to its end. */
export const run = (started: Started): Promise<CniEnded> => start(started).ended;

/** The variables of one verb, all of them, as containerd sets them. */
export function variables(verb: string, more: Readonly<Record<string, string | undefined>> = {}) {
  return {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: "c1",
    CNI_NETNS: "/var/run/netns/pt-cf-none",
    CNI_IFNAME: "eth0",
    CNI_PATH: debianPlugins,
    CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u1",
    ...more,
  };
}

export interface ErrorObject {
  readonly cniVersion: string;
  readonly code: number;
  readonly msg: string;
  readonly details: string;
}

/** The error of a failed call, after making sure that it is exactly one CNI error on stdout and a status other than zero. */
export function errorOf(ended: CniEnded): ErrorObject {
  if (ended.status === 0 || ended.status === null)
    throw new Error(`Expected a failure, got status ${ended.status}, stdout ${ended.stdout}, stderr ${ended.stderr}`);
  const value = JSON.parse(ended.stdout);
  const keys = Object.keys(value).sort().join(" ");
  if (keys !== "cniVersion code details msg") throw new Error(`Expected the four keys of an error, got ${keys}`);
  return value;
}

/** What a call that must succeed printed. */
export function resultOf(ended: CniEnded): Record<string, unknown> {
  if (ended.status !== 0) throw new Error(`Expected success, got ${ended.status}: ${ended.stdout}${ended.stderr}`);
  return ended.stdout === "" ? {} : JSON.parse(ended.stdout);
}
