import { documentVersion, type FlowsDocument, maxRows, maxTextChars } from "../../shared/documents/mod.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { brief } from "../../shared/printable.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { Category, readCookie, type TableName, tableRoles, tables } from "../datapath/ovs/pipeline/vocabulary.ts";
import {
  type InstalledFlow,
  instructionsText,
  matchText,
  OpenFlowClient,
  parseAddress,
} from "../protocols/openflow/mod.ts";
import type { ViewSources } from "./view-sources.ts";

/** Until the switch has taken the connection: people wait. */
const connectMs = 3_000;

/**
 * Tables with what is in them; of one table its flows too.
 * @param name the table, by its name or number; empty: none
 * @throws {RpcError} for a data path without flows, or a table that does not exist
 */
export async function flowsView({ context, node }: ViewSources, name: string): Promise<FlowsDocument> {
  const { dataPath, ovs, networks } = context.config;
  const bridge = networks[0]?.bridge;
  if (ovs === undefined || dataPath === "bridge") {
    const is = `the data path "${dataPath}" of node "${node}" has no flows of Open vSwitch`;
    throw new RpcError(GrpcCode.failedPrecondition, `Cannot show flows: ${is}, wanted one with "ovs"`);
  }
  const table = name === "" ? undefined : tableNamed(name);
  using client = await OpenFlowClient.connect(parseAddress(ovs.management, isWindows), { connectMs });
  const flows = await client.flows(table === undefined ? undefined : { table: tables[table] });
  const all = table === undefined ? flows : await client.flows();
  const shown = (table === undefined ? [] : flows).toSorted((a, b) => b.flow.priority - a.flow.priority);
  return {
    ...{ kind: "flows", version: documentVersion, node },
    dataPath: `bridge "${bridge ?? ""}" of Open vSwitch`,
    tables: tablesOf(all),
    ...(table === undefined ? {} : { table }),
    flows: shown.slice(0, maxRows).map(flowRow),
    omitted: Math.max(0, shown.length - maxRows),
  };
}

const tableNames = Object.keys(tables) as readonly TableName[];

/** @throws {RpcError} */
function tableNamed(name: string): TableName {
  const wanted = name.toLowerCase();
  const found = tableNames.find((one) => one.toLowerCase() === wanted || String(tables[one]) === wanted);
  if (found !== undefined) return found;
  throw new RpcError(
    GrpcCode.notFound,
    `Cannot show flows: there is no table "${brief(name, 80)}", wanted one of ${tableNames.join(", ")}`,
  );
}

function tablesOf(flows: readonly InstalledFlow[]): FlowsDocument["tables"] {
  const byTable = Map.groupBy(flows, ({ flow }) => flow.table);
  return tableNames.map((name) => {
    const own = byTable.get(tables[name]) ?? [];
    return {
      ...{ name, number: tables[name], about: tableRoles[name], flows: own.length },
      packets: sum(own, ({ counters }) => counters.packets),
      bytes: sum(own, ({ counters }) => counters.bytes),
    };
  });
}

const sum = (flows: readonly InstalledFlow[], of: (flow: InstalledFlow) => bigint | undefined): number =>
  count(flows.reduce((total, flow) => total + (of(flow) ?? 0n), 0n));

/** A counter of the switch has 64 bits, and may be anything where the switch is confused. */
const count = (value: bigint): number => Number(value > maxCount ? maxCount : value);
const maxCount = BigInt(Number.MAX_SAFE_INTEGER);

const purposes: Readonly<Record<number, string>> = {
  [Category.base]: "the node",
  [Category.pod]: "a pod",
  [Category.policy]: "network policies",
  [Category.service]: "a service",
  [Category.trace]: "a trace",
  [Category.node]: "another node",
  [Category.tenant]: "a project",
};

function flowRow({ flow, counters }: InstalledFlow): FlowsDocument["flows"][number] {
  const purpose = purposes[readCookie(flow.cookie).category];
  const { packets, bytes } = counters;
  return {
    priority: flow.priority,
    ...(packets === undefined ? {} : { packets: count(packets) }),
    ...(bytes === undefined ? {} : { bytes: count(bytes) }),
    match: brief(matchText(flow.match), maxTextChars),
    actions: brief(instructionsText(flow), maxTextChars),
    ...(purpose === undefined ? {} : { purpose }),
  };
}
