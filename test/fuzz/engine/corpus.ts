import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where the inputs of a target are kept: seeds by their names, what the engine found by its hash. */
export const corpusDirectory = (target: string): string => join(import.meta.dirname, "../corpus", target);

export interface Kept {
  readonly file: string;
  readonly bytes: Uint8Array;
}

/** In the order of the names, so that a run with the same seed goes the same way. */
export function readCorpus(target: string): Kept[] {
  const directory = corpusDirectory(target);
  // The engine's own tests have none.
  const files = existsSync(directory) ? readdirSync(directory) : [];
  return files.sort().map((file) => ({ file, bytes: new Uint8Array(readFileSync(join(directory, file))) }));
}

export const nameOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex").slice(0, 16);

/** Found by the engine, not written by a person: may give way to a smaller set. */
export const isFound = (file: string): boolean => /^[0-9a-f]{16}$/.test(file);

/** Puts these in the place of what the engine found before. */
export function keepInstead(target: string, inputs: readonly Uint8Array[]): void {
  const directory = corpusDirectory(target);
  mkdirSync(directory, { recursive: true });
  for (const file of readdirSync(directory).filter(isFound)) rmSync(join(directory, file));
  for (const bytes of inputs) writeFileSync(join(directory, nameOf(bytes)), bytes);
}
