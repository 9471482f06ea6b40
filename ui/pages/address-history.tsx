import type { DocumentPeriod } from "../../shared/documents/mod.ts";
import { Card } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { zonedTime } from "../parts/words.ts";
import { documentOf } from "../stream/store.ts";

interface AddressProps {
  readonly node: string;
  readonly address: string;
}

/** Who had an address, and when: the question of whoever reads its number in a log. */
export function AddressHistory({ node, address }: AddressProps) {
  const entry = documentOf("history", node, address);
  const { history = [], sinceMs, omitted = 0 } = entry?.document ?? {};
  return (
    <Card title={`Who had ${address}`}>
      <Table
        caption={`Who had ${address} of ${node}, and when`}
        columns={[
          { title: "Pod", text: ownerText },
          { title: "From", text: ({ fromMs }) => fromMs, cell: ({ fromMs }) => zonedTime(fromMs) },
          {
            title: "Until",
            text: ({ untilMs = Number.MAX_SAFE_INTEGER }) => untilMs,
            cell: ({ untilMs }) => (untilMs === undefined ? "now" : zonedTime(untilMs)),
          },
          { title: "Network", text: ({ network }) => network },
          { title: "Sandbox", text: ({ containerId }) => containerId.slice(0, 13) },
        ]}
        rows={history.filter((each) => each.address === address)}
        omitted={omitted}
        keyOf={({ containerId, ifname, generation }) => `${containerId} ${ifname} ${generation}`}
        empty={
          entry?.document === undefined ? (entry?.fault ?? "Not told yet") : "Nobody, as far as it is written down"
        }
      />
      {sinceMs !== undefined && <p class="quiet">What ended before {zonedTime(sinceMs)} is not kept.</p>}
    </Card>
  );
}

const ownerText = ({ podNamespace, podName, containerId }: DocumentPeriod): string =>
  podName === undefined ? containerId : `${podNamespace ?? ""}/${podName}`;
