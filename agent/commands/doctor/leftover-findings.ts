import { lstatSync, readdirSync, type Stats } from "node:fs";
import { basename, join } from "node:path";
import { logLockMs } from "../../../shared/os/log-file.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { type OpenSecret, openSecrets } from "../../config/own-files.ts";
import { conflistPath } from "../../conflist/conflist.ts";
import { leftBehind } from "../../conflist/left-behind.ts";
import type { Finding } from "./finding.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";

/**
 * What a killed process left half done in the kernel and in the switch, and pods whose interface somebody has removed.
 */
export const leftoverFindings = (snapshot: NodeSnapshot): readonly Finding[] => [
  ...halfMade(snapshot),
  ...strayFlows(snapshot),
  ...bareNamespaces(snapshot),
];

/** Reported also after the lease has gone, because only the runtime can recreate the pod. */
const bareNamespaces = ({ bareNamespaces: found }: NodeSnapshot): readonly Finding[] =>
  found.map(({ path, inode }) => ({
    severity: "warning",
    code: "namespace-without-interface",
    what: `The network namespace "${path}" of a sandbox has no interface that is up, apart from the loopback`,
    trusts: "the kernel",
    why: "Its pod has no network: its interface was deleted or taken down, or never made; no repair can make it anew",
    todo: 'remove the pod, so that it is made anew ("crictl inspectp", "podman inspect" and "lsns -t net" tell whose namespace it is)',
    evidence: inode,
  }));

const halfMade = ({ halfMade: links }: NodeSnapshot): readonly Finding[] =>
  links.map(({ name, index, state }) => ({
    severity: "warning",
    code: "half-made-interface",
    what: `The interface "${name}" is ${state === "arriving" ? "half made" : "given up and not deleted"}`,
    trusts: "the interface's group",
    why:
      state === "arriving"
        ? "An agent was killed while it made it; it has no owner, so no DEL can name it"
        : "An agent was killed before it could delete it, or the kernel refuses",
    todo: "have the agent take it away, as it does at its start",
    repair: { t: "node" },
    evidence: String(index),
  }));

function strayFlows({ switch: seen }: NodeSnapshot): readonly Finding[] {
  if (seen?.flowPorts === undefined) return [];
  return [...seen.flowPorts]
    .filter((number) => !seen.numbers.has(number))
    .map((number) => ({
      severity: "warning",
      code: "flows-without-port",
      what: `The switch has flows of a pod for port ${number}, which the bridge has not`,
      trusts: "the database of Open vSwitch",
      why: "A later port with this number would pass for that pod",
      todo: "have the agent take out every flow that it has not put in itself",
      repair: { t: "node" },
      evidence: String(number),
    }));
}

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

/** Not repaired, because it is unknown who else needs the file. */
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
    return stat?.isFile() === true && nowMs - stat.mtimeMs > logLockMs;
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

/** Forbidden mode bits: for files that others may read, and for those that only the owner may use. */
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
    return []; // Missing or unreadable files are reported by other checks.
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}
