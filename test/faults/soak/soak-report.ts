import { latencyLines } from "../workload/latencies.ts";
import type { Growth } from "./growth.ts";
import type { SoakReport } from "./soak-run.ts";

const lastEvents = 60;

/** For people. */
export function reportText(report: SoakReport): string {
  const { wrong } = report;
  const faults = Object.entries(report.faults).sort(([, a], [, b]) => b - a);
  const times = faults.reduce((sum, [, n]) => sum + n, 0);
  return [
    `${report.dataPath}, seed ${report.seed}: ${report.calls} calls in ${(report.seconds / 60).toFixed(1)} minutes, ${times} faults, ${report.looks} looks at everything`,
    ...section("Calls", latencyLines(report.verbs)),
    ...section(
      "Faults",
      faults.map(([name, n]) => `${String(n).padStart(4)}  ${name}`),
    ),
    ...section("The agent, in quiet moments while it was one process", report.growth.map(growthLine)),
    ...(wrong.length === 0 ? [] : section("The agent's last lines", report.agentLog)),
    ...(wrong.length === 0 ? [] : section("What happened last, in seconds", report.events.slice(-lastEvents))),
    "",
    ...(wrong.length === 0 ? ["Nothing was wrong."] : [`WRONG, with seed ${report.seed}:`, ...wrong]),
  ].join("\n");
}

const section = (title: string, lines: readonly string[]): readonly string[] =>
  lines.length === 0 ? [] : ["", title, ...lines];

const growthLine = ({ of, first, last, perHour, grows }: Growth): string =>
  `${of.padEnd(12)} ${first.toFixed(1)} at first, ${last.toFixed(1)} at last, ${perHour.toFixed(1)} an hour${grows ? ": GROWS" : ""}`;
