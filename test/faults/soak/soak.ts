import { appendFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { versions } from "../../bench/versions.ts";
import { runInside } from "../../support/own-network.ts";
import { faults } from "../kinds/index.ts";
import { soakNodes } from "./soak-nodes.ts";
import { reportText } from "./soak-report.ts";
import { runSoak } from "./soak-run.ts";

const usage = `Usage: npm run soak [-- --minutes N] [--seed N] [--data-path NAME] [--json FILE]

Pods come and go on a node of its own while everything that can go wrong does, in an order that the seed decides; after
each fault everything that must hold is looked at. Exit status 1 where something was wrong, with what happened last.
Ctrl-C ends it early, with its report.

  --minutes N        how long; default: 60
  --seed N           of an earlier run, to repeat its order; default: another one each time
  --data-path NAME   ${Object.keys(soakNodes).join(", ")}; default: bridge
  --json FILE        appends the report as one JSON line, with date and versions
`;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "60" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      "data-path": { type: "string", default: "bridge" },
      json: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  const start = soakNodes[values["data-path"]];
  if (values.help === true) {
    console.log(usage);
    return 0;
  }
  if (start === undefined || !(minutes > 0) || !Number.isInteger(seed)) {
    const is = `--minutes ${values.minutes} --seed ${values.seed} --data-path ${values["data-path"]}`;
    const wanted = `minutes above 0, a whole number, and one of ${Object.keys(soakNodes).join(", ")}`;
    console.error(`Cannot soak: asked for ${is}, wanted ${wanted}; --help says more`);
    return 2;
  }
  const stop = new AbortController();
  const inside = await runInside(() => stop.abort());
  if (inside !== undefined) return inside;
  const progress = (text: string): void => console.error(text);
  // The stubs of Windows and its programs talk over it.
  await execa("ip", ["link", "set", "lo", "up"]);
  progress(`seed ${seed}: starting a node`);
  await using node = await start();
  const wanted = faults.filter(({ on }) => on.includes(node.kind));
  const report = await runSoak({ node, faults: wanted, seconds: minutes * 60, seed, progress, signal: stop.signal });
  console.log(`\n${reportText(report)}`);
  if (values.json !== undefined) {
    const about = { date: new Date().toISOString(), ...report, versions: await versions() };
    appendFileSync(values.json, `${JSON.stringify(about)}\n`);
  }
  return report.wrong.length === 0 ? 0 : 1;
}
