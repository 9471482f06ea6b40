import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";
import { isReadable, type Mutant, mutantsOf, mutated } from "./mutations.ts";
import { ImportGraph } from "./narrow-tests.ts";
import { type Judged, leastPercent, percentOf, print } from "./report.ts";
import { runTests, type Trial } from "./trial.ts";

const usage = `Usage: npm run mutants -- FOLDER... [--count N] [--seed N] [--json]
       npm run mutants -- --again FILE

Puts single faults into the product's files below FOLDER (or into one file): a condition turned, a check, a statement, an
operand or an undo left out, a boundary or a constant moved. Runs for each the unit tests of its file, then those of what
imports it, and reports what no test noticed. The fault is put in where the tests load the file, so the work tree stays
as it is. Tests that run executables see no mutant. Exit status 1 where fewer than ${leastPercent} of 100 are noticed.

  --count N     how many (60)
  --seed N      which ones (1, or PIPETTE_SEED): the same for the same sources
  --again FILE  those that survived in an earlier report that --json printed
  --json        the report as JSON on standard output, progress on standard error
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: "string", default: "60" },
    seed: { type: "string", default: String(seed) },
    again: { type: "string" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** Tests that take longer with a mutant than so many times what they take without are held up by it; a busy machine is slow, too. */
const patience = { times: 4, leastSeconds: 60, maxSeconds: 300 };

const graph = new ImportGraph();
const healthy = new Map<string, Promise<Trial>>();
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));

if (values.help || (positionals.length === 0 && values.again === undefined)) console.log(usage);
else process.exitCode = await runAll(values.again === undefined ? chosen() : survivorsOf(values.again));

function chosen(): readonly Mutant[] {
  const files = positionals.flatMap((start) => graph.filesOf(start));
  const open = files.flatMap(({ path, text }) => mutantsOf(path, text).map((mutant) => ({ mutant, text })));
  const draw = random(Number(values.seed));
  const drawn: Mutant[] = [];
  while (drawn.length < Number(values.count) && open.length > 0)
    // Only of those that are drawn: to read each of some thousand texts would take minutes.
    for (const { mutant, text } of open.splice(draw(open.length), 1))
      if (isReadable(mutated(text, mutant))) drawn.push(mutant);
  return drawn.sort((a, b) => (a.path === b.path ? a.start - b.start : a.path < b.path ? -1 : 1));
}

function survivorsOf(report: string): readonly Mutant[] {
  const { mutants } = JSON.parse(readFileSync(report, "utf8")) as { mutants: readonly Judged[] };
  return mutants.filter(({ fate }) => fate === "survived").map(({ mutant }) => mutant);
}

async function runAll(mutants: readonly Mutant[]): Promise<number> {
  if (mutants.length === 0) {
    console.error(`Cannot look for mutants: nothing of the product lies below "${positionals.join('", "')}"`);
    return 1;
  }
  const judged: Judged[] = [];
  for (const mutant of mutants) {
    const { path, line, what } = mutant;
    if (!graph.isAsRead(path)) throw new Error(`Cannot judge mutants: "${path}" has changed since they were drawn`);
    const one = await judge(mutant);
    judged.push(one);
    const times = `${one.seconds.toFixed(1)} s`;
    console.error(`${judged.length}/${mutants.length} ${one.fate.padEnd(9)} ${path}:${line} ${what} (${times})`);
  }
  if (values.json) console.log(JSON.stringify({ seed: Number(values.seed), mutants: judged }, undefined, 2));
  else print(judged);
  return percentOf(judged) >= leastPercent ? 0 : 1;
}

/** The nearest tests first: where one of them notices it the others need not run. */
async function judge(mutant: Mutant): Promise<Judged> {
  const { first, others } = graph.testsOf(mutant.path);
  let seconds = 0;
  for (const tests of [first, others]) {
    if (tests.length === 0) continue;
    const without = await whole(tests);
    const bound = Math.max(patience.leastSeconds, patience.times * without.seconds);
    const trial = await runTests(tests, mutant, Math.min(bound, patience.maxSeconds));
    seconds += trial.seconds;
    if (trial.ending !== "passed") return { mutant, fate: trial.ending === "failed" ? "killed" : "timed out", seconds };
  }
  return { mutant, fate: "survived", seconds };
}

/** Tests that fail without any mutant would notice all of them. */
async function whole(tests: readonly string[]): Promise<Trial> {
  const key = tests.join(" ");
  const running = healthy.get(key) ?? runTests(tests, undefined, patience.maxSeconds);
  healthy.set(key, running);
  const trial = await running;
  if (trial.ending !== "passed")
    throw new Error(`Cannot judge mutants: without one these have ${trial.ending}: ${key}\n${trial.said}`);
  return trial;
}
