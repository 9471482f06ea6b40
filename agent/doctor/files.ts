import { lstatSync, readdirSync, type Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { limits } from "../../shared/limits.ts";
import { isWindows } from "../../shared/platform.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { type OpenSecret, openSecrets } from "../config/secret-files.ts";
import { conflistPath } from "../conflist.ts";
import type { Finding } from "./finding.ts";

/** Whoever writes a file beside its place is done within a second. */
const writtenMs = 60_000;

/** Files that a killed process left behind, and rights that let others in. */
export function fileFindings(config: AgentConfig, nowMs: number): readonly Finding[] {
  const { dataDir } = config;
  const conflist = conflistPath(config);
  const data = entriesOf(dataDir);
  const beside = conflist === undefined ? [] : entriesOf(dirname(conflist));
  const isOurs = (path: string): boolean => dirname(path) === dataDir || path.startsWith(`${conflist}.`);
  return [
    ...[...data, ...beside].flatMap((path) => (isOurs(path) ? leftBehind(path, nowMs) : [])),
    ...(isWindows ? [] : rights(config, data)),
    ...openSecrets(config).map(secret),
  ];
}

/** Whoever else needs the file is not known here, so nothing is repaired. */
const secret = ({ path, what }: OpenSecret): Finding => ({
  severity: "warning",
  code: "secret-readable",
  what,
  why: "Who reads it is this node to the registry, and can change what the others know",
  todo: `chmod o-r "${path}", and give the node another one`,
  evidence: path,
});

/** `X.PID.tmp` is about to become `X`, and `X.lock` of a log is held while the log is rotated. */
function leftBehind(path: string, nowMs: number): readonly Finding[] {
  const stat = statOf(path);
  const [, pid] = /\.(\d+)\.tmp$/.exec(path) ?? [];
  const isLogLock = path.endsWith(".log.lock");
  if (stat === undefined || !stat.isFile() || (pid === undefined && !isLogLock)) return [];
  const ageMs = nowMs - stat.mtimeMs;
  const isDone = isLogLock ? ageMs > limits.logLockMs : ageMs > writtenMs || !isAlive(Number(pid));
  if (!isDone) return [];
  return [
    {
      severity: "warning",
      code: isLogLock ? "stale-lock" : "stray-file",
      what: `"${path}" was left behind by a process that was killed`,
      why: isLogLock ? "No log is rotated while it is there" : "It takes room, and is never read",
      todo: "remove it",
      repair: { t: "remove", path },
      evidence: String(stat.mtimeMs),
    },
  ];
}

/** As seen from here: a process of another container may look dead, which its file's age makes up for a little. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (caught) {
    return caught instanceof Error && "code" in caught && caught.code === "EPERM";
  }
}

/** Bits of a mode: others may look, or nobody but the owner may. */
const readable = 0o022;
const own = 0o077;

/** Who can write to the leases can give one pod's address to another; who can reach the socket has the node's network. */
function rights(config: AgentConfig, data: readonly string[]): readonly Finding[] {
  const { dataDir, socket } = config;
  const conflist = conflistPath(config);
  return [
    ...closed(dataDir, readable),
    ...data
      .filter((path) => statOf(path)?.isFile())
      .flatMap((path) => closed(path, basename(path).startsWith("leases.db") ? own : readable)),
    ...closed(socket, own),
    ...(conflist === undefined ? [] : closed(conflist, readable)),
  ];
}

/** @param forbidden bits of the mode that must not be set */
function closed(path: string, forbidden: number): readonly Finding[] {
  const stat = statOf(path);
  if (stat === undefined || stat.isSymbolicLink()) return [];
  const user = process.getuid?.() ?? 0;
  const common = { why: "Whoever gets at it can take pods' addresses and their network", evidence: `${stat.ino}` };
  if (stat.uid !== user)
    return [
      {
        ...common,
        severity: "error",
        code: "wrong-owner",
        what: `"${path}" belongs to user ${stat.uid}, wanted ${user}`,
        todo: `find out who made it; then chown ${user} "${path}"`,
      },
    ];
  const is = stat.mode & 0o777;
  const mode = is & ~forbidden;
  if (is === mode) return [];
  return [
    {
      ...common,
      severity: "warning",
      code: "open-to-others",
      what: `"${path}" has mode ${octal(is)}, wanted ${octal(mode)}`,
      todo: `chmod ${octal(mode)} "${path}"`,
      repair: { t: "mode", path, mode },
    },
  ];
}

const octal = (mode: number): string => `0${mode.toString(8)}`;

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch {
    return []; // That it is missing or closed is another check's to tell.
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}
