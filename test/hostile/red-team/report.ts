import { formatTable } from "../../../shared/terminal/table.ts";
import type { Finding, Outcome } from "./outcome.ts";
import { rules } from "./rules.ts";

/** Of one mode. */
export interface Run {
  readonly mode: string;
  readonly seed: number;
  readonly seconds: number;
  readonly outcome: Outcome;
  /** Why nothing can be said of what did not arrive, if that is so. */
  readonly failure?: string;
}

const passed = ({ outcome, failure }: Run): boolean => failure === undefined && outcome.findings.length === 0;
export const allPassed = (runs: readonly Run[]): boolean => runs.length > 0 && runs.every(passed);

const hexOf = ({ smallest }: Finding): string =>
  smallest === undefined
    ? ""
    : [...(smallest.before === undefined ? [] : [smallest.before]), smallest.bytes]
        .map((bytes) => Buffer.from(bytes).toString("hex"))
        .join(",");

/** One of a run's sentences: what got through, how often, the smallest frame and how to send it again. */
export function sentences({ mode, outcome, failure }: Run): readonly string[] {
  const found = outcome.findings.map((finding) => {
    const { rule, place, count, smallest, change } = finding;
    const lines = [
      `${mode}, ${place}: ${rules[rule]} (${rule}), ${count} times`,
      ...(change === undefined ? [] : [change]),
      ...(smallest === undefined ? [] : [smallest.words, `--mode ${mode} --replay ${hexOf(finding)}`]),
    ];
    return lines.join("\n  ");
  });
  return failure === undefined ? found : [...found, `${mode}: ${failure}`];
}

export function reportText(runs: readonly Run[]): string {
  const rows = runs.map((run) => [
    run.mode,
    String(run.seed),
    String(run.outcome.frames),
    (run.outcome.frames / Math.max(run.seconds, 0.001)).toFixed(0),
    `${run.outcome.controls - run.outcome.controlsLost} of ${run.outcome.controls}`,
    String(run.outcome.allowed),
    run.failure === undefined ? String(run.outcome.findings.length) : `${run.outcome.findings.length}, not judged`,
  ]);
  const table = formatTable([
    ["MODE", "SEED", "FRAMES", "PER SECOND", "CONTROLS", "RIGHTLY ARRIVED", "GOT THROUGH"],
    ...rows,
  ]);
  return [...runs.flatMap(sentences), table].join("\n");
}

/** The same for programs. */
export const reportJson = (runs: readonly Run[]): string =>
  JSON.stringify(
    runs.map(({ outcome, ...run }) => ({
      ...run,
      frames: outcome.frames,
      refused: outcome.refused,
      controls: outcome.controls,
      controlsLost: outcome.controlsLost,
      rightlyArrived: outcome.allowed,
      findings: outcome.findings.map((finding) => ({
        ...{ rule: finding.rule, place: finding.place, count: finding.count, change: finding.change },
        ...{ words: finding.smallest?.words, hex: hexOf(finding) },
      })),
    })),
    null,
    2,
  );
