import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { isWindows } from "../../shared/os/platform.ts";

/**
 * Removes a directory that holds only files; a missing one is success. Bun's own recursive removal fails under Wine
 * (EFAULT), where this is tested.
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

/** Flushes a file's content to the disk. Windows allows it only on a descriptor for writing. */
export function syncFile(path: string): void {
  syncOpened(path, "r+");
}

/** Flushes the names in a directory, where the system can; Windows keeps a journal of them itself. */
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
