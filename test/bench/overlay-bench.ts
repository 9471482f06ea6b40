import { runBudgets } from "./bench-program.ts";
import { Launcher } from "./launch/launcher.ts";
import { measureOverlay } from "./overlay/measure-overlay.ts";

const usage = `Usage: npm run bench:overlay [-- --quick] [-- --json FILE]

Measures pods on Open vSwitch against Debian's containernetworking-plugins, flows and services against ovs-ofctl, both
sides in turn, with an Open vSwitch and a network namespace of its own. Exit status 1 where a budget is broken.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

process.exitCode = await runBudgets(usage, async (run) =>
  measureOverlay({
    ...run,
    launcher: await Launcher.compile(run.scratch),
    rounds: run.quick ? 10 : 40,
    flows: 1000,
    node: { pods: 250, peers: 512 },
    services: { count: 1000, endpoints: 10 },
    burst: 50,
  }),
);
