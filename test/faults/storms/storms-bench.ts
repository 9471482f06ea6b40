import { runBench } from "../../bench/bench-program.ts";
import { measureStorms } from "./measure-storms.ts";
import { stormLines, stormTable } from "./storm-report.ts";

const usage = `Usage: npm run bench:storms [-- --quick] [-- --json FILE]

Treats a node with a kernel bridge as bad days do, with the executables that are delivered: all pods at once, churn with
as many addresses as pods, a full node that is added again, checked, or drained while the agent is down, and ADD and DEL
of one sandbox crossing each other. Median, 99th percentile and maximum of every verb, beside Debian's bridge with
host-local where that can do the same. Needs root, and some minutes. Exit status 1 where anything was lost, given twice,
late, or left behind.

  --quick       fewer pods, and a shorter time without the agent
  --json FILE   appends one JSON line per storm, with date, machine and versions

PIPETTE_SEED repeats the crossings of an earlier run.
`;

const seed = Number(process.env["PIPETTE_SEED"] ?? Date.now() % 1_000_000);

const figures = await runBench({
  usage,
  measure: (run) =>
    measureStorms(
      run,
      run.quick
        ? { crowd: 50, full: 100, downMs: 5_000, churn: { lanes: 32, pods: 200 }, crossings: 50, seed }
        : { crowd: 100, full: 250, downMs: 60_000, churn: { lanes: 100, pods: 1_000 }, crossings: 400, seed },
    ),
  text: stormTable,
  lines: stormLines,
});
const ours = figures?.filter(({ of }) => of === "pipette") ?? [];
process.exitCode = ours.every(({ wrong }) => wrong.length === 0) ? 0 : 1;
