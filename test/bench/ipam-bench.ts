import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ipamJsonLines, ipamTables } from "./ipam/ipam-report.ts";
import { measureIpam } from "./ipam/measure-ipam.ts";
import { versions } from "./versions.ts";

const usage = `Usage: npm run bench:ipam [-- --quick] [-- --json FILE]

Measures what the allocator costs with up to a million leases, as a process of its own for each call and within one,
and by 1 to 64 processes at once; against Debian's host-local where that still answers in good time. Needs about
1 GB under the temporary directory, and some minutes.

  --quick       few rounds, and 100,000 leases at most: the figures are rough
  --json FILE   appends one JSON line per pool and per number of writers, with date, machine and versions
`;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});
if (values.help === true) console.log(usage);
else await bench(values.quick, values.json);

async function bench(quick: boolean, json: string | undefined): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-"));
  try {
    const figures = await measureIpam({
      dist: join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "dist", "linux-x64"),
      peers: "/usr/lib/cni",
      scratch,
      rounds: quick ? 10 : 60,
      calls: quick ? 500 : 3_000,
      writers: quick ? [1, 16] : [1, 4, 16, 64],
      mostLeases: quick ? 100_000 : Number.POSITIVE_INFINITY,
      mostLeasesWithPeer: quick ? 4_000 : 20_000,
      progress: (text) => console.error(`measuring ${text}`),
    });
    console.log(`\n${ipamTables(figures)}`);
    if (json !== undefined) appendFileSync(json, `${ipamJsonLines(figures, await versions())}\n`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
