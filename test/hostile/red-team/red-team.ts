import { parseArgs } from "node:util";
import { execa } from "execa";
import { runInside } from "../../support/own-network.ts";
import { Attack } from "./attack.ts";
import { allPassed, type Run, reportJson, reportText } from "./report.ts";
import { rules } from "./rules.ts";
import { siteNames, sites } from "./sites/index.ts";
import { nameOf } from "./world.ts";

const usage = `Usage: npm run red-team -- [--frames N] [--seed N] [--mode NAME]... [--json]
       npm run red-team -- --mode NAME --replay HEX[,HEX]

Sends from a pod's root what a seed makes of a grammar of frames, and holds whatever arrives anywhere (other pods, other
nodes, the node itself, its network), and whatever somebody then believes (routes, addresses, neighbours, learned MACs),
against a model of the rules. Exit status 1 where something got through, or where what must arrive did not; each with the
smallest frame that shows it. Needs root. Ctrl-C ends it early, with its report.

  --frames N    of all modes together (100000)
  --seed N      the same frames again
  --mode NAME   only this one; may come more than once. There are:
${siteNames.map((name) => `                  ${name}`).join("\n")}
  --json        the report for programs
  --replay HEX  this one frame, with everywhere that it arrives; what belongs before it stands first
`;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      frames: { type: "string", default: "100000" },
      seed: { type: "string", default: process.env["PIPETTE_SEED"] ?? String(Date.now() % 1_000_000) },
      mode: { type: "string", multiple: true },
      json: { type: "boolean", default: false },
      replay: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const [frames, seed] = [Number(values.frames), Number(values.seed)];
  const modes = values.mode ?? siteNames;
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const isReplay = values.replay !== undefined;
  const isFrames = values.replay === undefined || /^([0-9a-f]{2}){14,}(,([0-9a-f]{2}){14,})*$/i.test(values.replay);
  const areNames = modes.every((name) => siteNames.includes(name)) && (!isReplay || modes.length === 1);
  if (!areNames || !isFrames || !(frames > 0) || !Number.isInteger(seed)) {
    const shown = isFrames ? "" : ` --replay ${values.replay}`;
    const is = `--mode ${modes.join(" --mode ")} --frames ${values.frames} --seed ${values.seed}${shown}`;
    const wanted = `modes of ${siteNames.join(", ")} (one to replay in), numbers, and frames in hex digits`;
    console.error(`Cannot attack: asked for ${is}, wanted ${wanted}; --help says more`);
    return 2;
  }
  const stop = new AbortController();
  const inside = await runInside(() => stop.abort());
  if (inside !== undefined) return inside;
  await execa("ip", ["link", "set", "lo", "up"]);
  if (values.replay !== undefined) return replay(modes[0] ?? "", values.replay);
  const runs: Run[] = [];
  for (const mode of modes) {
    if (stop.signal.aborted) break;
    runs.push(await attack(mode, Math.ceil(frames / modes.length), seed, stop.signal));
  }
  console.log(values.json ? reportJson(runs) : reportText(runs));
  return allPassed(runs) ? 0 : 1;
}

async function attack(mode: string, frames: number, seed: number, signal: AbortSignal): Promise<Run> {
  console.error(`${mode}: seed ${seed}, starting`);
  await using site = await sites[mode]?.();
  if (site === undefined) throw new Error(`There is no mode "${mode}"`);
  using attack = await Attack.begin(site, seed);
  const started = performance.now();
  let saidMs = started;
  const progress = ({ frames: sent, findings }: { frames: number; findings: readonly unknown[] }): void => {
    if (performance.now() - saidMs < 2_000) return;
    saidMs = performance.now();
    console.error(`${mode}: ${sent} of ${frames} frames, ${findings.length} got through`);
  };
  const failure = await attack.run({ frames, signal, progress }).then(
    () => undefined,
    (caught: Error) => caught.message,
  );
  const seconds = (performance.now() - started) / 1000;
  return { mode, seed, seconds, outcome: attack.outcome, ...(failure === undefined ? {} : { failure }) };
}

async function replay(mode: string, hex: string): Promise<number> {
  await using site = await sites[mode]?.();
  if (site === undefined) throw new Error(`There is no mode "${mode}"`);
  using attack = await Attack.begin(site, 1);
  const judged = await attack.replay(hex.split(",").map((one) => Uint8Array.from(Buffer.from(one, "hex"))));
  await attack.look();
  for (const { place, rule, frame } of judged) {
    const verdict = rule === undefined ? "as it may" : `against the rule: ${rules[rule]}`;
    console.log(`arrived at ${nameOf(place)}, ${verdict}\n  ${Buffer.from(frame).toString("hex")}`);
  }
  if (judged.length === 0) console.log("arrived nowhere");
  for (const { place, rule, change } of attack.outcome.findings)
    if (change !== undefined) console.log(`${place}: ${rules[rule]}\n  ${change}`);
  return attack.outcome.findings.length === 0 ? 0 : 1;
}
