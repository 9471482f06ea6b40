import { OpenVswitch } from "../overlay/open-vswitch.ts";
import { runBudgets } from "./bench-program.ts";
import { Launcher } from "./launch/launcher.ts";
import { measureAll } from "./measure-all.ts";
import { measureWine } from "./measures/wine.ts";
import { measureOverlayPods } from "./overlay/measure-pods.ts";

const usage = `Usage: npm run bench [-- --quick] [-- --json FILE]

Measures every budget against Debian's containernetworking-plugins, both sides in turn, in a network
namespace of its own: the small program of forward/ in front, as it is installed, and the whole program by itself. Exit
status 1 where a budget is broken.

In the column "cache" stands how the executables lay in the page cache: "read", just read from end to end; "faulted", as
page faults brought them in, which is how they lie on a node after some time.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

process.exitCode = await runBudgets(usage, async (run) => {
  const setting = {
    ...run,
    launcher: await Launcher.compile(run.scratch),
    rounds: run.quick ? 10 : 40,
    fills: run.quick ? [0, 4000] : [0, 4000, 20_000],
    pods: 100,
    residentPods: 250,
  };
  const rows = await measureAll(setting);
  await using vswitch = await OpenVswitch.start();
  return [...rows, ...(await measureOverlayPods(vswitch, setting)), ...(await measureWine(setting))];
});
