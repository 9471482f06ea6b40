import { heapStats } from "bun:jsc";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { random } from "../../support/random.ts";
import { keepInstead, nameOf, readCorpus } from "./corpus.ts";
import { Fuzzer } from "./fuzzer.ts";
import { countersThere } from "./hits.ts";
import type { Report, WorkerOptions } from "./report.ts";
import { SharedInput } from "./shared-input.ts";
import type { Target } from "./target.ts";

// One target in a process of its own: `fuzz.ts` starts it, looks that it goes on, and ends it where it does not.

/** What may stay of a hundred thousand inputs: buffers that have grown to their most, compiled code, the corpus. */
const maxGrowthBytes = 48 * 1024 * 1024;

const options = JSON.parse(process.argv[2] ?? "{}") as WorkerOptions;
const say = (report: Report): void => console.log(JSON.stringify(report));
const { loadTarget } = (await import(options.targets)) as { loadTarget(name: string): Promise<Target> };
const target = await loadTarget(options.target);
const opened = await target.open();
const shared = new SharedInput(options.sharedFile);
const heapBytes = (): number => {
  Bun.gc(true);
  return heapStats().heapSize + heapStats().extraMemorySize;
};

const fuzzer = new Fuzzer({
  target,
  opened,
  chance: random(options.seed),
  before: (bytes) => shared.write(bytes),
  onDefect: ({ bytes, kind, why }) => {
    mkdirSync(options.foundDirectory, { recursive: true });
    const file = join(options.foundDirectory, nameOf(bytes));
    writeFileSync(file, bytes);
    say({ t: "defect", file, kind, why });
  },
});

const started = performance.now();
const progress = (): Report => ({
  t: "progress",
  inputs: fuzzer.inputs,
  seconds: (performance.now() - started) / 1000,
  kept: fuzzer.kept,
  reached: fuzzer.reached,
  counters: countersThere(),
});
const isOver = (): boolean => fuzzer.inputs >= options.inputs || performance.now() - started > options.milliseconds;

const corpus = readCorpus(options.target).map(({ bytes }) => bytes);
for (const bytes of corpus.length === 0 ? [new Uint8Array(0)] : corpus) await fuzzer.seed(bytes);
let half = 0;
for (let said = started; !isOver(); ) {
  await fuzzer.step();
  const share = Math.max(fuzzer.inputs / options.inputs, (performance.now() - started) / options.milliseconds);
  if (half === 0 && share >= 0.5) half = heapBytes();
  if (performance.now() - said < 2000) continue;
  said = performance.now();
  say(progress());
  // Timers and sockets that inputs have left behind get their turn.
  await Bun.sleep(0);
}
const grown = half === 0 ? 0 : heapBytes() - half;
if (grown > maxGrowthBytes) {
  const why = `The heap has grown by ${grown} bytes over the second half, wanted at most ${maxGrowthBytes}`;
  say({ t: "defect", file: "", kind: "growth", why });
}
if (options.keep) keepInstead(options.target, fuzzer.smallestSet(options.maxKept, options.maxKeptBytes));
say(progress());
say({ t: "done", grown });
await opened.close?.();
process.exit(0);
