import { useSignal } from "@preact/signals";
import type { DocumentFlow, DocumentTable, FlowsDocument } from "../../shared/documents/mod.ts";
import { Choice } from "../parts/choice.tsx";
import { Mark } from "../parts/mark.tsx";
import { Card, Faults, Page } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { counted, grouped } from "../parts/words.ts";
import { refine, route } from "../route.ts";
import { documentOf, documentsOf } from "../stream/store.ts";

/** Nodes with a switch: a kernel bridge has no pipeline. */
const switches = (): readonly string[] =>
  documentsOf("node")
    .filter(({ document }) => document !== undefined && document.dataPath !== "bridge")
    .map(({ node }) => node);

export const isPipelineThere = (): boolean => switches().length > 0;

/** The node whose pipeline is shown: the first, unless one is chosen. */
export function pipelineNode(): string {
  const { node = "" } = route.value.query;
  return node !== "" ? node : (switches()[0] ?? "");
}

export function Pipeline() {
  const node = pipelineNode();
  const { table = "", filter = "" } = route.value.query;
  const entry = documentOf("flows", node);
  const opened = documentOf("flows", node, table);
  const document = entry?.document;
  const about = document?.tables.find(({ name }) => name === table)?.about;
  return (
    <Page
      title="Pipeline"
      health={document === undefined ? "unknown" : "good"}
      answer={document === undefined ? (entry?.fault ?? "Nothing is known yet.") : answerOf(document)}
    >
      <div class="bar">
        <Choice label="Node" value={node} of={switches()} onChange={(value) => refine({ node: value, table: "" })} />
      </div>
      <Faults of={entry === undefined ? [] : [{ node, ...entry }]} />
      {document !== undefined && <Stages key={node} document={document} chosen={table} />}
      {table !== "" && (
        <Card title={`Flows of ${table}`}>
          {about !== undefined && <p>This table {about}.</p>}
          {opened?.fault !== undefined && <Mark health="unknown">{opened.fault}</Mark>}
          <span class="field">
            <label for="flow-filter">Only with</label>
            <input
              id="flow-filter"
              value={filter}
              placeholder="a pod, an address, a policy"
              onInput={(event) => refine({ filter: event.currentTarget.value })}
            />
          </span>
          <Flows flows={opened?.document?.flows ?? []} omitted={opened?.document?.omitted ?? 0} filter={filter} />
        </Card>
      )}
    </Page>
  );
}

/** What happens inside this node? */
function answerOf({ node, tables, dataPath }: FlowsDocument): string {
  const rules = tables.reduce((sum, { flows }) => sum + flows, 0);
  const used = tables.filter(({ flows }) => flows > 0).length;
  return `On ${node} ${counted(rules, "rule")} in ${counted(used, "table")} decide about each packet: ${dataPath}.`;
}

/** Tables from left to right, as packets pass them. Those without a flow are folded. */
function Stages({ document, chosen }: { readonly document: FlowsDocument; readonly chosen: string }) {
  const since = useSignal(new Map(document.tables.map(({ name, packets }) => [name, packets])));
  const showsEmpty = useSignal(false);
  const empty = document.tables.filter(({ flows }) => flows === 0);
  const shown = showsEmpty.value ? document.tables : document.tables.filter(({ flows }) => flows > 0);
  return (
    <Card title="Tables">
      <ol class="stages">
        {shown.map((table) => (
          <li key={table.name}>
            <Stage
              table={table}
              more={table.packets - (since.value.get(table.name) ?? 0)}
              isChosen={table.name === chosen}
            />
          </li>
        ))}
      </ol>
      <p class="quiet">
        Packets that came since this view was opened, of all.
        {empty.length > 0 && " "}
        {empty.length > 0 && (
          <button type="button" onClick={() => (showsEmpty.value = !showsEmpty.value)}>
            {showsEmpty.value ? "Hide" : "Show"} {counted(empty.length, "table")} without flows
          </button>
        )}
      </p>
    </Card>
  );
}

function Stage({
  table,
  more,
  isChosen,
}: {
  readonly table: DocumentTable;
  readonly more: number;
  readonly isChosen: boolean;
}) {
  return (
    <button
      type="button"
      class="stage"
      aria-pressed={isChosen}
      onClick={() => refine({ table: isChosen ? "" : table.name, filter: "" })}
    >
      <b>{table.name}</b>
      <span>{counted(table.flows, "flow")}</span>
      <span class="quiet">
        +{grouped(more)} of {grouped(table.packets)} packets
      </span>
    </button>
  );
}

interface FlowsProps {
  readonly flows: readonly DocumentFlow[];
  readonly omitted: number;
  readonly filter: string;
}

function Flows({ flows, omitted, filter }: FlowsProps) {
  const wanted = filter.toLowerCase();
  const rows = flows
    .map((flow, i) => ({ flow, i }))
    .filter(({ flow: { match, actions, purpose = "" } }) =>
      `${match} ${actions} ${purpose}`.toLowerCase().includes(wanted),
    );
  return (
    <Table
      caption="Flows in words, the highest priority first"
      columns={[
        { title: "Priority", text: ({ flow }) => flow.priority ?? "", isNumber: true },
        { title: "Packets that", text: ({ flow }) => flow.match },
        { title: "What becomes of them", text: ({ flow }) => flow.actions },
        { title: "For", text: ({ flow }) => flow.purpose ?? "" },
        { title: "Packets", text: ({ flow }) => flow.packets ?? "", isNumber: true },
      ]}
      rows={rows}
      omitted={omitted}
      keyOf={({ i }) => String(i)}
      empty={flows.length === 0 ? "It has no flows, or they have not come yet" : "None has that in it"}
    />
  );
}
