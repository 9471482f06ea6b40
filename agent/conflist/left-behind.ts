import { lstatSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { AgentConfig } from "../config/agent-config.ts";
import { conflistPath } from "./conflist.ts";

/** A temporary file is renamed within a second; an older one was left behind. */
const writtenMs = 60_000;

/** `X.PID.tmp` is about to become `X`; earlier releases wrote `X.PID.later.tmp` for large files. */
const temporary = /\.(\d+)(?:\.later)?\.tmp$/;

/**
 * Temporary files beside the agent's files whose writer was killed.
 * @param isOwn whether a file with this process's own id may still be in use; default: yes
 */
export function leftBehind(config: AgentConfig, nowMs: number, isOwn = true): readonly string[] {
  const conflist = conflistPath(config);
  const { dataDir } = config;
  const top = entriesOf(dataDir);
  // Subdirectories too, such as that of endpoints' records; a file has no entries.
  const own = [...top, ...top.flatMap(entriesOf)];
  // In the runtime's directory only files beside our own are considered.
  const beside = conflist === undefined ? [] : entriesOf(dirname(conflist));
  const all = [...own, ...beside.filter((path) => basename(path).startsWith(`${basename(conflist ?? "")}.`))];
  return [...new Set(all)].filter((path) => isLeft(path, nowMs, isOwn));
}

/**
 * Removes them at an agent's start, when it is the only process with this data directory and has written nothing yet.
 * @returns the removed files
 */
export function sweepLeftBehind(config: AgentConfig): readonly string[] {
  return leftBehind(config, Date.now(), false).filter((path) => {
    try {
      rmSync(path);
      return true;
    } catch {
      return false; // The doctor reports it.
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

/** A process of another container may look dead from here, so the file's age counts as well. */
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
    return []; // It is a file, missing or unreadable, which other checks report.
  }
}
