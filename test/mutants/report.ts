import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Mutant, mutated } from "./mutations.ts";

export interface Judged {
  readonly mutant: Mutant;
  readonly fate: "killed" | "survived" | "timed out";
  /** Of all tests that ran for it. */
  readonly seconds: number;
}

/** Of 100 mutants so many have to be noticed. */
export const leastPercent = 85;

/** One that holds up its tests for ever is noticed, too. */
export const percentOf = (judged: readonly Judged[]): number =>
  (100 * judged.filter(({ fate }) => fate !== "survived").length) / judged.length;

/** The survivors with their changes, then the numbers per file. */
export function print(judged: readonly Judged[]): void {
  for (const { mutant, fate } of judged) {
    if (fate === "survived")
      console.log(`\nSURVIVED ${mutant.path}:${mutant.line} ${mutant.what}\n${difference(mutant)}`);
  }
  const numbers = (of: readonly Judged[]): string =>
    (["killed", "timed out", "survived"] as const)
      .map((fate) => String(of.filter((one) => one.fate === fate).length).padStart(10))
      .join("");
  console.log(`\n${"file".padEnd(50)}    killed timed out  survived`);
  for (const path of new Set(judged.map(({ mutant }) => mutant.path)))
    console.log(`${path.padEnd(50)}${numbers(judged.filter(({ mutant }) => mutant.path === path))}`);
  console.log(`${"all".padEnd(50)}${numbers(judged)}\n\n${percentOf(judged).toFixed(0)} of 100 noticed`);
}

/** The lines that the mutant changes, as they are and as they would be. */
export function difference(mutant: Mutant): string {
  const text = readFileSync(join(import.meta.dirname, "../..", mutant.path), "utf8");
  const changed = mutated(text, mutant);
  const from = text.lastIndexOf("\n", mutant.start - 1) + 1;
  const lines = (whole: string, end: number, sign: string): string =>
    whole
      .slice(from, (whole.indexOf("\n", end) + whole.length + 1) % (whole.length + 1))
      .split("\n")
      .map((line) => `  ${sign} ${line}`)
      .join("\n");
  const endChanged = mutant.start + mutant.replacement.length;
  return `${lines(text, mutant.end, "-")}\n${lines(changed, endChanged, "+")}`;
}
