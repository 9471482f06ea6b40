import { documentVersion, type FindingsDocument } from "../../../shared/documents/mod.ts";
import { counted, printable } from "../../../shared/terminal/printable.ts";
import { type Diagnosis, findingView } from "./examine.ts";
import { type Finding, type Severity, severities } from "./finding.ts";
import type { Repaired } from "./repair.ts";

/**
 * One node, for people.
 * @param repaired absent where nobody asked for a repair
 * @param wide with the code of each finding, which scripts go by
 */
export function doctorText(
  { findings, leases, interfaces }: Diagnosis,
  repaired: readonly Repaired[] | undefined,
  wide: boolean,
): string {
  const done = (repaired ?? []).map(({ what, done: word, error }) =>
    error === undefined ? `repaired: ${what}\n  ${word}` : `not repaired: ${what}\n  ${error}`,
  );
  const told = findings.map((finding) => findingText(finding, { wasRepair: repaired !== undefined, wide }));
  const count = (wanted: Severity): string =>
    counted(findings.filter(({ severity }) => severity === wanted).length, wanted);
  const sum = findings.length === 0 ? "all agree" : severities.map(count).join(", ");
  const blocks = [...done, ...told].map((text) => `${text.split("\n").map(printable).join("\n")}\n`);
  return `${[...blocks, `${counted(leases, "lease")}, ${counted(interfaces, "interface")} of pods: ${sum}\n`].join("\n")}`;
}

function findingText(
  { severity, code, what, trusts, why, todo, repair }: Finding,
  { wasRepair, wide }: { readonly wasRepair: boolean; readonly wide: boolean },
): string {
  // Escaped, since a line end inside would begin a new line.
  const line = (text: string): string => printable(text);
  return [
    `${severity}: ${line(what)}`,
    ...(wide ? [`  code: ${line(code)}`] : []),
    ...(trusts === undefined ? [] : [`  believed: ${line(trusts)}`]),
    `  why:  ${line(why)}`,
    `  do:   ${line(todo)}${repair === undefined || wasRepair ? "" : " (--repair does it)"}`,
  ].join("\n");
}

/** For programs. @param node absent: nobody has said which it is */
export const doctorObject = (
  node: string,
  { findings, leases, interfaces }: Diagnosis,
  repaired: readonly Repaired[] = [],
): object => ({
  ...{ kind: "doctor", version: documentVersion, node },
  ...{ leases, interfaces, findings: findings.map(findingView), repaired },
});

/** Only the node itself knows the repair; that there is one is told. */
export const diagnosisOf = ({ findings, leases, interfaces }: FindingsDocument): Diagnosis => ({
  ...{ leases, interfaces },
  findings: findings.map(({ repairable, ...finding }) => ({
    ...finding,
    evidence: "",
    ...(repairable ? { repair: { t: "node" } } : {}),
  })),
});

/** The findings as a document, which a watch compares, and `get` shows. */
export const findingsOf = (node: string, { findings, leases, interfaces }: Diagnosis): FindingsDocument => ({
  ...{ kind: "findings", version: documentVersion, node },
  ...{ leases, interfaces, findings: findings.map(findingView), omitted: 0 },
});
