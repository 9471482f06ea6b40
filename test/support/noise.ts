import { closeSync, fstatSync, openSync, writeSync } from "node:fs";
import { random } from "./random.ts";

/** The size of a page in the lease database. */
export const pageBytes = 2048;

/** Puts noise, always the same, over a part of a file, and not beyond its end. */
export function overwrite(path: string, from: number, bytes: number): void {
  const noise = random(1);
  const fd = openSync(path, "r+");
  const over = Uint8Array.from({ length: Math.min(bytes, fstatSync(fd).size - from) }, () => noise(256));
  writeSync(fd, over, 0, over.length, from);
  closeSync(fd);
}

/** The same over one page of a database, numbered from 1. */
export const fillPage = (path: string, page: number): void => overwrite(path, (page - 1) * pageBytes, pageBytes);
