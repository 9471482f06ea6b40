import type { DocumentCall } from "../../shared/documents/mod.ts";
import { bucketsOf } from "../model/call-buckets.ts";
import { podName } from "../model/pods.ts";
import { Card } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { counted, duration, percentile, time } from "../parts/words.ts";
import { documentsOf } from "../stream/store.ts";

const slowest = 20;

interface NodeCall {
  readonly node: string;
  readonly call: DocumentCall;
}

/** How long pods have waited for their network, and in what. */
export function CallTimes() {
  const adds = documentsOf("calls").flatMap(({ node, document }) =>
    (document?.calls ?? []).filter(({ verb }) => verb === "ADD").map((call): NodeCall => ({ node, call })),
  );
  if (adds.length === 0) return null;
  const times = adds.map(({ call }) => call.tookMicros);
  const [half, most] = [percentile(times, 50) ?? 0, percentile(times, 99) ?? 0];
  return (
    <Card title="Pod starts">
      <p>
        Of {counted(adds.length, "start")} that the agents remember half took at most {duration(half)}, and 99 of 100 at
        most {duration(most)}.
      </p>
      <Histogram times={times} />
      <Table
        caption="The slowest starts, and where their time went"
        columns={[
          { title: "Pod", text: ({ call }) => podName(call) },
          { title: "Node", text: ({ node }) => node },
          { title: "At", text: ({ call }) => call.beganAtMs, cell: ({ call }) => time(call.beganAtMs) },
          {
            title: "Took",
            text: ({ call }) => call.tookMicros,
            cell: ({ call }) => duration(call.tookMicros),
            isNumber: true,
          },
          { title: "Where", text: ({ call }) => phasesText(call), cell: ({ call }) => <Phases call={call} /> },
        ]}
        rows={adds.toSorted((a, b) => b.call.tookMicros - a.call.tookMicros).slice(0, slowest)}
        keyOf={({ node, call }) => `${node} ${call.beganAtMs} ${call.containerId} ${call.ifname}`}
        empty=""
      />
    </Card>
  );
}

const [barWidth, barStep, height] = [34, 40, 110];

function Histogram({ times }: { readonly times: readonly number[] }) {
  const buckets = bucketsOf(times);
  const most = Math.max(1, ...buckets.map(({ count }) => count));
  const label = buckets.map(({ upToMicros, count }) => `${count} within ${duration(upToMicros)}`).join(", ");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
    <section class="scroll" tabIndex={0} aria-label="Starts by their time">
      <svg
        class="bars"
        viewBox={`0 0 ${buckets.length * barStep} ${height + 22}`}
        width={buckets.length * barStep}
        role="img"
        aria-label={label}
      >
        {buckets.map(({ upToMicros, count }, i) => {
          const size = (count / most) * (height - 18);
          return (
            <g key={upToMicros} transform={`translate(${i * barStep} 0)`}>
              <rect y={height - size} width={barWidth} height={size} />
              {count > 0 && (
                <text x={barWidth / 2} y={height - size - 4}>
                  {count}
                </text>
              )}
              <text x={barWidth / 2} y={height + 15}>
                {duration(upToMicros).replace(".00", "").replace(".0", "")}
              </text>
            </g>
          );
        })}
      </svg>
    </section>
  );
}

const phasesText = ({ phases }: DocumentCall): string =>
  phases.map(({ phase, tookMicros }) => `${phase} ${duration(tookMicros)}`).join(", ");

function Phases({ call }: { readonly call: DocumentCall }) {
  const longest = call.phases.reduce((so, { tookMicros }) => Math.max(so, tookMicros), 0);
  return (
    <span class="phases">
      {call.phases.map(({ phase, tookMicros }) => (
        <span key={phase} class={tookMicros === longest ? "longest" : undefined}>
          {phase} {duration(tookMicros)}
        </span>
      ))}
      {call.code !== 0 && <span>failed with {call.code}</span>}
    </span>
  );
}
