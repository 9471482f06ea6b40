import { counted, formatJson, printable } from "../../../shared/terminal/printable.ts";
import type { Diagnosis } from "./examine.ts";
import { type Finding, type Severity, severities } from "./finding.ts";
import type { Repaired } from "./repair.ts";

/** @param repaired absent where nobody asked for a repair */
export function reportText({ findings, leases, interfaces }: Diagnosis, repaired?: readonly Repaired[]): string {
  const done = (repaired ?? []).map(({ what, done: word, error }) =>
    error === undefined ? `repaired: ${what}\n  ${word}` : `not repaired: ${what}\n  ${error}`,
  );
  const told = findings.map((finding) => findingText(finding, repaired !== undefined));
  const count = (wanted: Severity): string =>
    counted(findings.filter(({ severity }) => severity === wanted).length, wanted);
  const sum = findings.length === 0 ? "all agree" : severities.map(count).join(", ");
  const blocks = [...done, ...told].map((text) => `${text.split("\n").map(printable).join("\n")}\n`);
  return `${[...blocks, `${counted(leases, "lease")}, ${counted(interfaces, "interface")} of pods: ${sum}\n`].join("\n")}`;
}

function findingText({ severity, what, trusts, why, todo, repair }: Finding, wasRepair: boolean): string {
  // A line end inside would begin a line of its own.
  const line = (text: string): string => printable(text);
  return [
    `${severity}: ${line(what)}`,
    ...(trusts === undefined ? [] : [`  believed: ${line(trusts)}`]),
    `  why:  ${line(why)}`,
    `  do:   ${line(todo)}${repair === undefined || wasRepair ? "" : " (--repair does it)"}`,
  ].join("\n");
}

export function reportJson(diagnosis: Diagnosis, repaired: readonly Repaired[] = []): string {
  const { findings, leases, interfaces } = diagnosis;
  const plain = findings.map(({ repair, evidence: _evidence, ...finding }) => ({
    ...finding,
    repairable: repair !== undefined,
  }));
  return formatJson({ leases, interfaces, findings: plain, repaired });
}
