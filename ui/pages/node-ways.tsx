import type { Pair } from "../model/peers.ts";
import { Mark } from "../parts/mark.tsx";
import { Card } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { duration, time } from "../parts/words.ts";

/** What a node knows of the way of its pods' packets to each other one. */
export function NodeWays({ node, pairs }: { readonly node: string; readonly pairs: readonly Pair[] }) {
  const ways = pairs.filter(({ from, peer }) => from === node && peer?.probes !== undefined);
  if (ways.length === 0) return null;
  return (
    <Card title={`Ways from ${node}`}>
      <Table
        caption={`Ways of pods' packets from ${node}`}
        columns={[
          { title: "To", text: ({ to }) => to },
          { title: "What", text: ({ word }) => word, cell: ({ health, word }) => <Mark health={health}>{word}</Mark> },
          {
            title: "Round trip",
            text: ({ rttMicros = Number.MAX_SAFE_INTEGER }) => rttMicros,
            cell: ({ rttMicros }) => (rttMicros === undefined ? "–" : duration(rttMicros)),
            isNumber: true,
          },
          {
            title: "Last answer",
            text: lastAnswer,
            cell: (way) => (lastAnswer(way) === 0 ? "–" : time(lastAnswer(way))),
          },
        ]}
        rows={ways}
        keyOf={({ to }) => to}
        empty=""
      />
    </Card>
  );
}

const lastAnswer = ({ peer }: Pair): number => Math.max(0, ...(peer?.probes ?? []).map(({ seenAtMs = 0 }) => seenAtMs));
