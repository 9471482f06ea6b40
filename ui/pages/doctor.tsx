import type { DocumentFinding } from "../../shared/documents/mod.ts";
import { findingCounts } from "../model/node-health.ts";
import { type Health, Mark } from "../parts/mark.tsx";
import { Card, Faults, Page } from "../parts/page.tsx";
import { counted, listed } from "../parts/words.ts";
import { can } from "../stream/connection.ts";
import { documentsOf } from "../stream/store.ts";
import { CallTimes } from "./call-times.tsx";
import { Repair } from "./repair.tsx";

const mostFindings = 50;
const severities = ["error", "warning", "note"] as const;
const healthOf: Readonly<Record<(typeof severities)[number], Health>> = {
  error: "bad",
  warning: "warn",
  note: "unknown",
};

interface NodeFinding {
  readonly node: string;
  readonly finding: DocumentFinding;
}

export function Doctor() {
  const documents = documentsOf("findings");
  const counts = findingCounts(documents);
  const findings = documents
    .flatMap(({ node, document }) => (document?.findings ?? []).map((finding): NodeFinding => ({ node, finding })))
    .toSorted((a, b) => severities.indexOf(a.finding.severity) - severities.indexOf(b.finding.severity));
  const looked = documents.filter(({ document }) => document !== undefined).map(({ node }) => node);
  const health: Health =
    looked.length === 0 ? "unknown" : counts.errors > 0 ? "bad" : counts.warnings > 0 ? "warn" : "good";
  return (
    <Page title="Doctor" health={health} answer={answerOf(findings, looked)}>
      <Faults of={documents} />
      {findings.slice(0, mostFindings).map(({ node, finding }) => (
        <Finding key={`${node} ${finding.code} ${finding.what}`} node={node} finding={finding} />
      ))}
      {findings.length > mostFindings && (
        <p class="quiet">{counted(findings.length - mostFindings, "finding")} more: mend these first</p>
      )}
      {can("repair") && findings.some(({ finding }) => finding.repairable) && <Repair />}
      <CallTimes />
    </Page>
  );
}

/** What should I do? */
function answerOf(findings: readonly NodeFinding[], looked: readonly string[]): string {
  if (looked.length === 0) return "No node has been looked at yet.";
  const [first] = findings;
  const where = looked.length === 1 ? (looked[0] ?? "") : counted(looked.length, "node");
  if (first === undefined) return `Nothing: on ${where} all agree.`;
  const todo = first.finding.todo;
  const nodes = listed([...new Set(findings.map(({ node }) => node))]);
  return `${counted(findings.length, "finding")} on ${nodes}. First: ${todo}.`;
}

function Finding({ node, finding }: NodeFinding) {
  const { severity, what, trusts, why, todo, repairable, code } = finding;
  return (
    <Card title={`${node}: ${code}`}>
      <p class="what">
        <Mark health={healthOf[severity]}>
          {severity}: {what}
        </Mark>
      </p>
      <dl>
        {trusts !== undefined && (
          <>
            <dt>Believed</dt>
            <dd>{trusts}</dd>
          </>
        )}
        <dt>Why</dt>
        <dd>{why}</dd>
        <dt>What to do</dt>
        <dd>
          {todo}
          {repairable && (
            <>
              ; on {node}: <code>pipette doctor --repair</code>
            </>
          )}
        </dd>
      </dl>
    </Card>
  );
}
