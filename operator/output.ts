import { stringify } from "yaml";
import { documentVersion } from "../shared/documents/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { printable } from "../shared/printable.ts";
import type { OptionSpec } from "../shared/terminal/command.ts";
import { formatJson } from "../shared/terminal/printable.ts";
import { formatTable } from "../shared/terminal/table.ts";
import type { NodeFailure } from "./ask-nodes.ts";
import type { Table } from "./tables/tables.ts";

export const outputForms = ["table", "wide", "json", "yaml"] as const;
export type OutputForm = (typeof outputForms)[number];

export const outputOption = {
  output: { value: "FORM", short: "o", of: outputForms, help: "how to print it (default table)" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/**
 * @param json the older `--json` of a command that has both
 * @throws {CniError} 7 where they contradict each other
 */
export function formOf(output: string | undefined, json = false): OutputForm {
  if (json && output !== undefined && output !== "json")
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot choose a form: "--json" and "--output ${output}" are both there, wanted one of them`,
    );
  return json ? "json" : (outputForms.find((form) => form === output) ?? "table");
}

/** What a watch puts between two looks: documents of YAML need it, tables are told apart, and JSON has its own ends. */
export const betweenLooks: Readonly<Record<OutputForm, string>> = { table: "\n", wide: "\n", json: "", yaml: "---\n" };

/** Rows of a table on a terminal; beyond, nobody reads them, and programs take JSON. */
const maxShown = 2_000;
/** Of one cell, so that a hostile or a long one does not push the others away. */
const maxCellChars = 200;

/** A document with who it is from. */
export interface Printed<D> {
  readonly node: string;
  readonly atMs: number;
  readonly document: D;
}

/** For programs: one document as it is, several in a list. */
export const asData = (form: "json" | "yaml", value: unknown): string =>
  form === "json" ? formatJson(value) : yamlText(value);

/** What several nodes say, and who of them says nothing. */
const listOf = (documents: readonly unknown[], failures: readonly NodeFailure[]): object => ({
  kind: "list",
  version: documentVersion,
  items: documents,
  failures,
});

/**
 * The same of nodes: of one its own object, as long as it was there; else a list with those that say nothing.
 * @param ofSeveral several were asked for, or all
 */
export function nodesAsData(
  form: "json" | "yaml",
  documents: readonly unknown[],
  failures: readonly NodeFailure[],
  ofSeveral: boolean,
): string {
  const [only] = documents;
  return asData(form, ofSeveral || failures.length > 0 ? listOf(documents, failures) : only);
}

/** YAML that is safe on a terminal: JSON's escapes are those of its double quotes. */
function yamlText(value: unknown): string {
  const isSafe = (text: string): boolean => printable(text) === text;
  const text = stringify(value, { lineWidth: 0 });
  if (text.split("\n").every(isSafe)) return text;
  // Somewhere is something that a terminal would obey.
  const quoted = stringify(value, { lineWidth: 0, defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "PLAIN" });
  return quoted.split("\n").map(printable).join("\n");
}

/** @param ofSeveral with a column that says which node each row is of */
export function asTable<D, Row>(
  printed: readonly Printed<D>[],
  table: Table<D, Row>,
  { wide, ofSeveral }: { readonly wide: boolean; readonly ofSeveral: boolean },
): string {
  const columns = table.columns.filter((column) => wide || column.wide === undefined);
  const rows = printed.flatMap(({ node, atMs, document }) =>
    table.rowsOf(document).map((row) => [
      ...(ofSeveral ? [node] : []),
      ...columns.map(({ of }) => {
        const text = of(row, atMs);
        return wide || text.length <= maxCellChars ? text : `${text.slice(0, maxCellChars - 3)}...`;
      }),
    ]),
  );
  const left = printed.reduce((sum, { document }) => sum + table.omittedOf(document), 0);
  if (rows.length === 0 && left === 0) return `No ${table.what}\n`;
  const shown = rows.slice(0, maxShown);
  const more = rows.length - shown.length + left;
  const titles = [...(ofSeveral ? ["NODE"] : []), ...columns.map(({ title }) => title)];
  return `${formatTable([titles, ...shown])}${more === 0 ? "" : `${more} more\n`}`;
}
