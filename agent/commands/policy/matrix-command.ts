import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { counted, formatJson, printableLines } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { askCluster, clusterOptions } from "./ask-cluster.ts";
import { readCluster } from "./cluster-view.ts";
import { type Matrix, matrixOf } from "./matrix.ts";

const action = "show who reaches whom";

/** Columns that fit a terminal. */
const mostColumns = 40;

export const matrixCommand = defineCommand({
  action,
  about: `Shows which pods reach which by the cluster's network policies: a row for those that send, a column for those that
receive. Pods that no policy tells apart are one row. "+" is everything, "-" nothing, "%" some ports or protocols.`,
  options: clusterOptions,
  exits: { 0: "done, also when nothing is refused", 2: "cannot tell, or wrong arguments" },
  run: ({ options: given }, io) =>
    askCluster(given, action, io, async (cluster) => {
      const view = await readCluster(cluster);
      const matrix = matrixOf(view, given.namespace, (done, total) =>
        cluster.progress("groups of pods compared", done, total),
      );
      io.stdout(given.json ? formatJson(matrix) : matrixText(matrix));
      return exitStatus.done;
    }),
});

function matrixText({ groups, rows, partly, omitted }: Matrix): string {
  if (groups.length === 0) return "No pods\n";
  const columns = groups.slice(0, mostColumns);
  const table = formatTable([
    ["", "FROM", ...columns.map((_, i) => String(i + 1))],
    ...groups.map(({ name }, i) => [String(i + 1), name, ...[...(rows[i] ?? "")].slice(0, mostColumns)]),
  ]);
  const some = partly.map(({ from, to, refused }) => `${groups[from]?.name} to ${groups[to]?.name}: not ${refused}\n`);
  const left = [
    ...(groups.length > mostColumns ? [`${counted(groups.length - mostColumns, "column")} more with --json`] : []),
    ...(omitted > 0 ? [`${counted(omitted, "group")} of pods more: give a namespace`] : []),
  ];
  return `${table}${printableLines(`${some.length === 0 ? "" : "\n"}${some.join("")}${left.map((text) => `${text}\n`).join("")}`)}`;
}
