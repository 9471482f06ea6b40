import { lstatSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { AgentConfig } from "../config/agent-config.ts";
import { conflistPath } from "./conflist.ts";

/** Whoever writes a file beside its place is done within a second. */
const writtenMs = 60_000;

/** `X.PID.tmp` is about to become `X`; `X.PID.later.tmp` was, as earlier releases wrote what is long. */
const temporary = /\.(\d+)(?:\.later)?\.tmp$/;

/**
 * Files beside those of the agent that nobody is going to finish: whoever wrote them was killed.
 * @param isOwn says of this process's own number whether it may still be at it; absent: it may
 */
export function leftBehind(config: AgentConfig, nowMs: number, isOwn = true): readonly string[] {
  const conflist = conflistPath(config);
  const { dataDir } = config;
  const top = entriesOf(dataDir);
  // Rooms of its own, such as that of endpoints' records; what is no directory has no entries.
  const own = [...top, ...top.flatMap(entriesOf)];
  // In the runtime's directory the others' files are not ours.
  const beside = conflist === undefined ? [] : entriesOf(dirname(conflist));
  const all = [...own, ...beside.filter((path) => basename(path).startsWith(`${basename(conflist ?? "")}.`))];
  return [...new Set(all)].filter((path) => isLeft(path, nowMs, isOwn));
}

/**
 * Takes them away, at an agent's start: it is the only one with this data directory then, and has written nothing yet.
 * @returns what went
 */
export function sweepLeftBehind(config: AgentConfig): readonly string[] {
  return leftBehind(config, Date.now(), false).filter((path) => {
    try {
      rmSync(path);
      return true;
    } catch {
      return false; // The doctor tells of it.
    }
  });
}

function isLeft(path: string, nowMs: number, isOwn: boolean): boolean {
  const [, pid] = temporary.exec(path) ?? [];
  if (pid === undefined) return false;
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isFile() !== true) return false;
  if (Number(pid) === process.pid && !isOwn) return true;
  return nowMs - stat.mtimeMs > writtenMs || !isAlive(Number(pid));
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

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch {
    return []; // It is a file, or missing or closed, which is another check's to tell.
  }
}
