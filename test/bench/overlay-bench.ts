import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { runInside } from "../support/own-network.ts";
import { measureOverlay } from "./overlay/measure-overlay.ts";
import { jsonLines, table } from "./report.ts";
import { passes } from "./row.ts";
import { versions } from "./versions.ts";

const usage = `Usage: npm run bench:overlay [-- --quick] [-- --json FILE]

Measures pods on Open vSwitch against Debian's containernetworking-plugins, flows and services against ovs-ofctl, both
sides in turn, with an Open vSwitch and a network namespace of its own. Exit status 1 where a budget is broken.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});
if (values.help === true) console.log(usage);
else process.exitCode = (await runInside()) ?? (await bench(values.quick, values.json));

async function bench(quick: boolean, json: string | undefined): Promise<number> {
  await execa("ip", ["link", "set", "lo", "up"]);
  const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-"));
  try {
    const rows = await measureOverlay({
      dist: join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "dist", "linux-x64"),
      peers: "/usr/lib/cni",
      scratch,
      rounds: quick ? 10 : 40,
      flows: 1000,
      node: { pods: 250, peers: 512 },
      services: { count: 1000, endpoints: 10 },
      progress: (text) => console.error(`measuring ${text}`),
    });
    console.log(`\n${table(rows)}`);
    if (json !== undefined) appendFileSync(json, `${jsonLines(rows, await versions())}\n`);
    return rows.every(passes) ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
