import type { DocumentCall } from "../../shared/documents/mod.ts";
import { findingCounts, healthOf, type NodeHealth } from "../model/node-health.ts";
import { fullest, poolHealth, poolsOf } from "../model/pools.ts";
import { type Health, Mark, worst } from "../parts/mark.tsx";
import { Card, Faults, Page } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { counted, duration, listed, percent, percentile, time, zonedTime } from "../parts/words.ts";
import { hrefTo } from "../route.ts";
import { documentsOf } from "../stream/store.ts";

const hourMs = 3_600_000;
const recentCalls = 20;

interface NodeCall {
  readonly node: string;
  readonly call: DocumentCall;
}

export function Overview() {
  const nodes = documentsOf("node").map(healthOf);
  const findings = findingCounts(documentsOf("findings"));
  const pools = poolsOf(documentsOf("addresses"));
  const calls = documentsOf("calls").flatMap(({ node, document }) =>
    (document?.calls ?? []).map((call): NodeCall => ({ node, call })),
  );
  const tight = fullest(pools);
  const health = overall(nodes, findings.errors, findings.warnings, tight?.free);
  return (
    <Page title="Overview" health={health} answer={answerOf(nodes, findings, tight?.free, calls.length > 0)}>
      <div class="tiles">
        <NodesTile nodes={nodes} />
        {tight !== undefined && (
          <Tile
            title="Addresses free"
            health={poolHealth(tight.free)}
            value={percent(tight.free, 1)}
            note={`least: ${tight.pool.network} on ${tight.node}`}
            href={hrefTo("addresses", { node: tight.node })}
          />
        )}
        <CallsTile calls={calls} />
        <FindingsTile {...findings} />
      </div>
      <Faults of={documentsOf("node")} />
      <Card title="Nodes">
        <Table
          caption="Nodes and how they are"
          columns={[
            {
              title: "Node",
              text: ({ node }) => node,
              cell: ({ node }) => <a href={hrefTo("map", { node })}>{node}</a>,
            },
            { title: "State", text: ({ word }) => word, cell: (row) => <Mark health={row.health}>{row.word}</Mark> },
            { title: "Why", text: ({ reasons }) => listed(reasons, 2) },
          ]}
          rows={nodes.toSorted((a, b) => rank(b.health) - rank(a.health))}
          keyOf={({ node }) => node}
          empty="No node has answered yet"
        />
      </Card>
      <RecentCalls calls={calls} />
    </Page>
  );
}

const rank = (health: Health): number => ["good", "warn", "unknown", "bad"].indexOf(health);

function overall(nodes: readonly NodeHealth[], errors: number, warnings: number, free: number | undefined): Health {
  if (nodes.length === 0) return "unknown";
  return worst([
    ...nodes.map(({ health }) => (health === "unknown" ? "warn" : health)),
    ...(errors > 0 ? (["bad"] as const) : warnings > 0 ? (["warn"] as const) : []),
    ...(free === undefined ? [] : [poolHealth(free)]),
  ]);
}

/** Is the network fine? */
function answerOf(
  nodes: readonly NodeHealth[],
  { errors, warnings }: { readonly errors: number; readonly warnings: number },
  free: number | undefined,
  hasCalls: boolean,
): string {
  if (nodes.length === 0) return "Nothing is known yet: no node has answered.";
  const of = (health: Health): string[] => nodes.filter((each) => each.health === health).map(({ node }) => node);
  const [bad, silent, warn] = [of("bad"), of("unknown"), of("warn")];
  if (bad.length > 0) return `Pods get no network on ${listed(bad)}.`;
  if (silent.length > 0)
    return `${counted(silent.length, "node")} of ${nodes.length} cannot be asked: ${listed(silent)}.`;
  if (errors > 0) return `Pods get their network, and the doctor has found ${counted(errors, "error")}.`;
  if (free !== undefined && free <= 0.2)
    return `Pods get their network, but only ${percent(free, 1)} of a pool is free.`;
  if (warn.length > 0) return `Pods get their network, with shortcomings on ${listed(warn)}.`;
  if (warnings > 0) return `Pods get their network, and the doctor has found ${counted(warnings, "warning")}.`;
  const calls = hasCalls ? "" : " No pod has come or gone since the agents started.";
  return `The network is fine: ${counted(nodes.length, "node is", "nodes are")} ready.${calls}`;
}

interface TileProps {
  readonly title: string;
  readonly health: Health;
  readonly value: string;
  readonly note: string;
  readonly href: string;
}

function Tile({ title, health, value, note, href }: TileProps) {
  return (
    <a class="tile" href={href}>
      <span class="tile-title">
        <Mark health={health}>{title}</Mark>
      </span>
      <span class="tile-value">{value}</span>
      <span class="quiet">{note}</span>
    </a>
  );
}

function NodesTile({ nodes }: { readonly nodes: readonly NodeHealth[] }) {
  const ready = nodes.filter(({ health }) => health === "good" || health === "warn").length;
  const health = nodes.length === 0 ? "unknown" : worst(nodes.map((each) => each.health));
  const others = nodes.length - ready;
  const note = others === 0 ? "all answer and serve" : `${counted(others, "node does", "nodes do")} not`;
  return (
    <Tile title="Agents ready" health={health} value={`${ready} / ${nodes.length}`} note={note} href={hrefTo("map")} />
  );
}

function CallsTile({ calls }: { readonly calls: readonly NodeCall[] }) {
  const now = Date.now();
  const adds = calls.filter(({ call }) => call.verb === "ADD" && now - call.beganAtMs <= hourMs);
  const failed = adds.filter(({ call }) => call.code !== 0).length;
  const times = adds.filter(({ call }) => call.code === 0).map(({ call }) => call.tookMicros);
  const [half, most] = [percentile(times, 50), percentile(times, 99)];
  const value = half === undefined ? "–" : duration(half);
  const slow = most === undefined ? "no pod has started in the last hour" : `of 100 starts 99 within ${duration(most)}`;
  const note = failed === 0 ? slow : `${counted(failed, "start")} of ${adds.length} failed in the last hour`;
  const health: Health = failed > 0 ? "warn" : half === undefined ? "unknown" : "good";
  return <Tile title="Pod start" health={health} value={value} note={note} href={hrefTo("doctor")} />;
}

function FindingsTile({ errors, warnings, notes }: Readonly<Record<"errors" | "warnings" | "notes", number>>) {
  const health: Health = errors > 0 ? "bad" : warnings > 0 ? "warn" : "good";
  const note = `${counted(errors, "error")}, ${counted(warnings, "warning")}, ${counted(notes, "note")}`;
  return (
    <Tile title="Findings" health={health} value={String(errors + warnings)} note={note} href={hrefTo("doctor")} />
  );
}

function RecentCalls({ calls }: { readonly calls: readonly NodeCall[] }) {
  const recent = calls.toSorted((a, b) => b.call.beganAtMs - a.call.beganAtMs).slice(0, recentCalls);
  return (
    <Card title="Last calls">
      <Table
        caption="The last calls of the container runtimes"
        columns={[
          {
            title: "Time",
            text: ({ call }) => call.beganAtMs,
            cell: ({ call }) => <time title={zonedTime(call.beganAtMs)}>{time(call.beganAtMs)}</time>,
          },
          { title: "Call", text: ({ call }) => call.verb },
          { title: "Pod", text: ({ call }) => podText(call) },
          { title: "Node", text: ({ node }) => node },
          {
            title: "Took",
            text: ({ call }) => call.tookMicros,
            cell: ({ call }) => duration(call.tookMicros),
            isNumber: true,
          },
          {
            title: "Outcome",
            text: ({ call }) => call.code,
            cell: ({ call }) => (
              <Mark health={call.code === 0 ? "good" : "bad"}>
                {call.code === 0 ? "done" : `${call.code}: ${call.message ?? ""}`}
              </Mark>
            ),
          },
        ]}
        rows={recent}
        keyOf={({ node, call }) => `${node} ${call.beganAtMs} ${call.verb} ${call.containerId} ${call.ifname}`}
        empty="No call has come since the agents started, or they do not tell."
      />
    </Card>
  );
}

const podText = ({ podNamespace, podName, containerId }: DocumentCall): string =>
  podName === undefined ? containerId.slice(0, 13) : `${podNamespace ?? ""}/${podName}`;
