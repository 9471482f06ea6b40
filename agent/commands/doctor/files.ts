import { lstatSync, readdirSync, type Stats } from "node:fs";
import { basename, join } from "node:path";
import { limits } from "../../../shared/limits.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { type OpenSecret, openSecrets } from "../../config/secret-files.ts";
import { conflistPath } from "../../conflist/conflist.ts";
import { leftBehind } from "../../conflist/left-behind.ts";
import type { Finding } from "./finding.ts";

/** Files that a killed process left behind, and rights that let others in. */
export function fileFindings(config: AgentConfig, nowMs: number): readonly Finding[] {
  const { dataDir } = config;
  const data = entriesOf(dataDir);
  return [
    ...leftBehind(config, nowMs).map((path) => left(path, "stray-file", "It takes room, and is never read")),
    ...staleLocks(data, nowMs).map((path) => left(path, "stale-lock", "No log is rotated while it is there")),
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

/** A `X.lock` of a log is held while the log is rotated. */
const staleLocks = (paths: readonly string[], nowMs: number): readonly string[] =>
  paths.filter((path) => {
    const stat = path.endsWith(".log.lock") ? statOf(path) : undefined;
    return stat?.isFile() === true && nowMs - stat.mtimeMs > limits.logLockMs;
  });

const left = (path: string, code: "stale-lock" | "stray-file", why: string): Finding => ({
  severity: "warning",
  code,
  what: `"${path}" was left behind by a process that was killed`,
  why,
  todo: "remove it",
  repair: { t: "remove", path },
  evidence: String(statOf(path)?.mtimeMs),
});

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
