import type { FuzzRun, KillRun, Run, SoakRun, StormRun } from "./runs.ts";

/** The page of all runs that are kept; `docs/reliability-figures.md`. */
export function figuresPage(runs: readonly Run[]): string {
  const soaks = runs.filter((run) => run.of === "soak");
  const storms = runs.filter((run) => run.of === "storm");
  const fuzzed = runs.filter((run) => run.of === "fuzz");
  const kills = runs.filter((run) => run.of === "kill");
  return `# Figures of reliability

What long runs came to. [reliability.md](reliability.md) says what each of them does. "npm run figures" makes this page
of \`test/figures/runs.jsonl\`, and takes new runs in: \`npm run soak -- --json FILE\` (also \`bench:storms\`, \`fuzz\`), then
\`npm run figures -- FILE\`.

The runs were made on a shared machine with two cores. Times under load are mostly those of processes that wait for a
processor; compare only figures of one run.

## Soak

${table(["date", "data path", "seed", "minutes", "calls", "faults", "looks at everything", "wrong", "longest ADD, DEL, STATUS", "machine"], soaks.map(soakRow))}

## Storms

${table(["date", "storm", "who", "took", "verb", "p50", "p99", "max", "wrong"], storms.flatMap(stormRows))}

## Fuzzing

${table(["date", "boundary", "seed", "inputs", "branches reached", "defects"], fuzzed.map(fuzzRow))}

## Kills

At each step of a call, with \`PIPETTE_KILL=all\`; nothing was lost at any of them. Some steps are met only now and then.

${table(["date", "what", "steps tried", "of"], kills.map(killRow))}
`;
}

const count = (n: number | undefined): string => n?.toLocaleString("en-US") ?? "–";

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function soakRow({ faultKinds, longestMs, ...run }: SoakRun): readonly string[] {
  const faults = faultKinds === undefined ? count(run.faults) : `${count(run.faults)} of ${faultKinds} kinds`;
  const longest = ["ADD", "DEL", "STATUS"].map((verb) => {
    const ms = longestMs[verb];
    return ms === undefined ? "–" : (ms / 1000).toFixed(1);
  });
  return [
    ...[run.date, run.dataPath, String(run.seed), String(run.minutes), count(run.calls), faults, count(run.looks)],
    ...[count(run.wrong), `${longest.join(", ")} s`, run.machine ?? ""],
  ];
}

function stormRows({ date, storm, who, seconds, wrong, verbs }: StormRun): readonly (readonly string[])[] {
  return verbs.map(({ verb, ...times }, i) => [
    ...(i === 0 ? [date, storm, who, `${seconds.toFixed(1)} s`] : ["", "", "", ""]),
    ...[verb, ...[times.p50, times.p99, times.max].map((ms) => `${count(ms)} ms`)],
    i === 0 ? count(wrong) : "",
  ]);
}

const fuzzRow = ({ date, boundary, seed, inputs, branches, defects }: FuzzRun): readonly string[] => [
  ...[date, boundary, String(seed), count(inputs), count(branches), count(defects)],
];

const killRow = ({ date, what, tried, steps }: KillRun): readonly string[] => [date, what, count(tried), count(steps)];
