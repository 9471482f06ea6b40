import { runBudgets } from "./bench-program.ts";
import { measureAll } from "./measure-all.ts";

const usage = `Usage: npm run bench [-- --quick] [-- --json FILE]

Measures every budget against Debian's containernetworking-plugins, both sides in turn, in a network
namespace of its own. Exit status 1 where a budget is broken.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

process.exitCode = await runBudgets(usage, (run) =>
  measureAll({
    ...run,
    rounds: run.quick ? 10 : 40,
    fills: run.quick ? [0, 4000] : [0, 4000, 20_000],
    pods: 100,
    residentPods: 250,
  }),
);
