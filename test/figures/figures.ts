import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { figuresPage } from "./page.ts";
import { type Run, runOf } from "./runs.ts";

/** `npm run figures [-- FILE...]`: takes the runs of these files in, and makes docs/reliability-figures.md anew. */
const kept = join(import.meta.dirname, "runs.jsonl");
const page = join(import.meta.dirname, "../../docs/reliability-figures.md");

const linesOf = (file: string): readonly string[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");

const taken = process.argv.slice(2).flatMap(linesOf).map(runOf);
appendFileSync(kept, taken.map((run) => `${JSON.stringify(run)}\n`).join(""));
const runs = linesOf(kept).map((line) => JSON.parse(line) as Run);
writeFileSync(page, figuresPage(runs));
console.log(`${taken.length} runs taken in, ${runs.length} on the page`);
