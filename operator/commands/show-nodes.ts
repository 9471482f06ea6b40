import type { NodeKind } from "../../shared/documents/mod.ts";
import type { OptionSpec } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { printableLines } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { askEach, type NodeFailure } from "../ask-nodes.ts";
import type { DocumentSource } from "../document-source.ts";
import { askNode, type NodeSaid, type Wanted } from "../node-report.ts";
import { betweenLooks, type OutputForm } from "../output.ts";
import { watchNodes } from "./watch.ts";

/** Of every command that shows documents of nodes. */
export const watchOption = {
  watch: { short: "w", help: "shows it again whenever it changes, until it is interrupted" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** What to print, and the exit status where every node has answered. */
export interface Print {
  readonly text: string;
  readonly status: number;
}

/** What is asked of whom, and how it is shown. */
export interface Shown<K extends NodeKind> {
  readonly source: DocumentSource;
  readonly nodes: readonly string[];
  readonly wanted: Wanted<K>;
  readonly form: OutputForm;
  /** @param failures for programs: people are told by this */
  readonly print: (said: readonly NodeSaid<K>[], failures: readonly NodeFailure[]) => Print | Promise<Print>;
}

/**
 * Shows what nodes say, once, or again whenever it changes. Nodes that say nothing are named on stderr.
 * @returns the exit status
 */
export async function showNodes<K extends NodeKind>(
  { source, nodes, wanted, form, print }: Shown<K>,
  { watch }: { readonly watch: boolean },
  io: TerminalIo,
  signal: AbortSignal,
): Promise<number> {
  if (!watch) {
    const { answers, failures } = await askEach(nodes, signal, (node, each) => askNode(source, node, wanted, each));
    const said = answers.map(({ answer }) => answer);
    const { text, status } = await print(said, failures);
    io.stdout(text);
    for (const { reason } of failures) io.stderr(`${printableLines(reason)}\n`);
    return failures.length > 0 ? exitStatus.cannotTell : status;
  }
  let status: number = exitStatus.done;
  let before = "";
  const show = async (said: readonly NodeSaid<K>[]): Promise<void> => {
    const shown = await print(said, []);
    status = shown.status;
    io.stdout(`${before}${shown.text}`);
    before = betweenLooks[form];
  };
  const silent = await watchNodes({ source, nodes, wanted, show }, io, signal);
  return silent > 0 ? exitStatus.cannotTell : status;
}
