import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { corpusDirectory } from "./engine/corpus.ts";
import { replay } from "./engine/replay.ts";
import type { Progress } from "./engine/report.ts";
import { type Outcome, supervise } from "./engine/supervise.ts";
import { targetNames, targets } from "./targets/all.ts";

const usage = `Usage: npm run fuzz -- [--target NAME]... [--inputs N] [--minutes M] [--seed N] [--keep]
       npm run fuzz -- --target NAME --replay FILE

Gives inputs made from kept ones to every boundary of the product, and keeps those that reach new branches. Exit status
1 where the product did anything else than take an input or refuse it in one clear error; the input is kept in dist/fuzz.

  --target NAME  only this one; may come more than once. There are:
${targetNames.map((name) => `                   ${name}`).join("\n")}
  --inputs N     of all targets together (1000000)
  --minutes M    the longest time, of all targets together
  --seed N       the same inputs again
  --keep         put the smallest set of inputs that reaches the same into test/fuzz/corpus
  --json FILE    appends a JSON line for each target, which "npm run figures" takes in
  --replay FILE  this one input, with what it does
`;

const { values } = parseArgs({
  options: {
    target: { type: "string", multiple: true },
    inputs: { type: "string", default: "1000000" },
    minutes: { type: "string" },
    seed: { type: "string", default: process.env["PIPETTE_SEED"] ?? String(Date.now() % 1_000_000) },
    keep: { type: "boolean", default: false },
    json: { type: "string" },
    replay: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

/** Of one target's corpus: the whole is to stay small enough to be read. */
const maxKept = 6;
const maxKeptBytes = 48 * 1024;

if (values.help) console.log(usage);
else if (values.replay !== undefined) process.exitCode = await replay(values.target?.[0] ?? "", values.replay);
else process.exitCode = (await runAll()) ? 0 : 1;

async function runAll(): Promise<boolean> {
  const chosen = targets.filter(({ name }) => values.target?.includes(name) ?? true);
  if (chosen.length === 0) {
    console.error(
      `Cannot fuzz: there is no target "${values.target?.join(", ")}", wanted one of ${targetNames.join(", ")}`,
    );
    return false;
  }
  const shares = chosen.reduce((sum, { share }) => sum + share, 0);
  const seed = Number(values.seed);
  console.log(`Seed ${seed}\n\n${row("target", "inputs", "inputs/s", "branches", "kept", "defects")}`);
  let inputs = 0;
  let defects = 0;
  for (const { name, share } of chosen) {
    const part = share / shares;
    const milliseconds = values.minutes === undefined ? 2 ** 40 : Number(values.minutes) * 60_000 * part;
    const asked = {
      target: name,
      targets: join(import.meta.dirname, "targets/all.ts"),
      seed,
      inputs: Math.ceil(Number(values.inputs) * part),
      milliseconds,
      foundDirectory: join(import.meta.dirname, "../../dist/fuzz", name),
      keep: values.keep,
      maxKept,
      maxKeptBytes,
    };
    const outcome = await supervise(asked, progressOf(name));
    print(name, outcome);
    if (values.json !== undefined) appendFileSync(values.json, `${jsonLine(name, seed, outcome)}\n`);
    inputs += outcome.progress.inputs;
    defects += outcome.defects.length;
  }
  console.log(`\n${inputs} inputs, ${defects} defects${values.keep ? `, kept in ${corpusDirectory("")}` : ""}`);
  return defects === 0;
}

/** On a terminal the line is written over; elsewhere there is one now and then. */
function progressOf(name: string): (progress: Progress) => void {
  let saidMs = performance.now();
  return ({ inputs, reached }) => {
    const text = `${name}: ${inputs} inputs, ${reached} branches`;
    if (process.stderr.isTTY) process.stderr.write(`\r${text.padEnd(70)}\r`);
    else if (performance.now() - saidMs > 30_000) {
      saidMs = performance.now();
      process.stderr.write(`  ${text}\n`);
    }
  };
}

function jsonLine(boundary: string, seed: number, { progress, defects }: Outcome): string {
  const { inputs, reached: branches } = progress;
  return JSON.stringify({ date: new Date().toISOString(), boundary, seed, inputs, branches, defects: defects.length });
}

/** What was wrong, with the causes, and of each stack the beginning. */
function briefly(why: string): string {
  let frames = 0;
  const lines = why.split("\n").filter((line) => {
    frames = /^\s+at /.test(line) ? frames + 1 : 0;
    return frames <= 3;
  });
  return lines.slice(0, 20).join("\n  ");
}

function print(name: string, { progress, defects }: Outcome): void {
  const { inputs, seconds, reached, counters, kept } = progress;
  const rate = (inputs / Math.max(seconds, 0.001)).toFixed(0);
  console.log(row(name, String(inputs), rate, `${reached} of ${counters}`, String(kept), String(defects.length)));
  for (const { file, why } of defects) {
    console.log(`\nDEFECT ${briefly(why)}`);
    if (file !== "") console.log(`  Again: npm run fuzz -- --target ${name} --replay ${file}\n`);
  }
}

function row(...cells: readonly string[]): string {
  return cells.map((cell, i) => (i === 0 ? cell.padEnd(22) : cell.padStart(i === 3 ? 16 : 10))).join(" ");
}
