import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { isWindows } from "../../shared/os/platform.ts";

/**
 * Takes a directory of files away; that there is none is success. Bun's own recursive removal fails under Wine, where
 * this is tested (EFAULT), and more than files was never put there.
 */
export function removeWork(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isDirectory()) {
    unlinkSync(path);
    return;
  }
  for (const name of readdirSync(path)) unlinkSync(join(path, name));
  rmdirSync(path);
}

/** Brings a file's content to the disk. Windows does so only for who may write it. */
export function syncFile(path: string): void {
  syncOpened(path, "r+");
}

/** The same of the names in a directory, where the system can: Windows keeps a log of them itself. */
export function syncNames(directory: string): void {
  if (!isWindows) syncOpened(directory, "r");
}

function syncOpened(path: string, flags: string): void {
  const fd = openSync(path, flags);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
