import { existsSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { prefixName } from "./template.ts";
import { removeServerDirectory } from "./wine-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where all test files of one run keep what they share of Wine; made by the first that needs it. */
    readonly wineDirectory: string;
  }
}

const start = "pipette-wine-";

/** Called by vitest before the first test file: names the directory, and takes away those of runs that were killed. */
export function setup(project: TestProject): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(start) ? name.slice(start.length) : "";
    if (/^\d+$/.test(pid) && !existsSync(`/proc/${pid}`)) remove(join(tmpdir(), name));
  }
  project.provide("wineDirectory", ownDirectory());
}

/** Called by vitest behind the last test file. */
export function teardown(): void {
  remove(ownDirectory());
}

/** Of a run that was killed the servers have ended, but nobody has tidied up behind them. */
function remove(directory: string): void {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory)) {
    removeServerDirectory(join(directory, entry));
    removeServerDirectory(join(directory, entry, prefixName));
  }
  rmSync(directory, { recursive: true, force: true });
}

const ownDirectory = (): string => join(tmpdir(), `${start}${process.pid}`);
