import { runBudgets } from "./bench-program.ts";
import { Launcher } from "./launch/launcher.ts";
import { measureMetrics } from "./measures/metrics.ts";

const usage = `Usage: npm run bench:metrics [-- --quick] [-- --json FILE]

Measures what the numbers for Prometheus cost: an ADD by an agent that keeps them against one by an agent that does not,
in turn, and the memory of both with 250 pods each. Exit status 1 where a budget is broken.

  --quick       few rounds and 20 pods: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

process.exitCode = await runBudgets(usage, async (run) =>
  measureMetrics({
    ...run,
    launcher: await Launcher.compile(run.scratch),
    rounds: run.quick ? 10 : 100,
    residentPods: run.quick ? 20 : 250,
  }),
);
