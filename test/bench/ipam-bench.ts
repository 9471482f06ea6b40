import { runBench } from "./bench-program.ts";
import { ipamJsonLines, ipamTables } from "./ipam/ipam-report.ts";
import { measureIpam } from "./ipam/measure-ipam.ts";
import { Launcher } from "./launch/launcher.ts";

const usage = `Usage: npm run bench:ipam [-- --quick] [-- --json FILE]

Measures what the allocator costs with up to a million leases, as a process of its own for each call and within one,
and by 1 to 64 processes at once; against Debian's host-local where that still answers in good time. Needs about
1 GB under the temporary directory, and some minutes.

  --quick       few rounds, and 100,000 leases at most: the figures are rough
  --json FILE   appends one JSON line per pool and per number of writers, with date, machine and versions
`;

await runBench({
  usage,
  measure: async (run) =>
    measureIpam({
      ...run,
      launcher: await Launcher.compile(run.scratch),
      rounds: run.quick ? 10 : 60,
      calls: run.quick ? 500 : 3_000,
      writers: run.quick ? [1, 16] : [1, 4, 16, 64],
      maxLeases: run.quick ? 100_000 : Number.POSITIVE_INFINITY,
      maxLeasesWithPeer: run.quick ? 4_000 : 20_000,
    }),
  text: ipamTables,
  lines: ipamJsonLines,
});
