import { pause } from "../../shared/async/abortable.ts";
import { CniError } from "../../shared/errors.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { printableLines } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import type { NodeFailure } from "../ask-nodes.ts";
import { maxWaitMs } from "../document-source.ts";
import type { Printed } from "../output.ts";
import type { Asked } from "./get-command.ts";

/** After a node did not answer, until it is asked again: doubles from the first to the second. */
const retryMs = { first: 500, longest: 30_000 };
/** Between two looks that are printed: what changes at once is one change. */
const calmMs = 100;

/** What is known of one node. */
type Known = Printed<unknown> & { readonly revision: string };

/**
 * Shows the documents again whenever one changes. A node that does not answer is named once, and asked again later; its
 * last document stays until then.
 * @returns the exit status, once the signal is aborted or nothing can change
 */
export async function watchNodes(
  { source, question, nodes }: Asked,
  show: (printed: readonly Printed<unknown>[], failures: readonly NodeFailure[]) => number,
  io: TerminalIo,
  signal: AbortSignal,
): Promise<number> {
  const known = new Map<string, Known>();
  const failed = new Set<string>();
  let status: number = exitStatus.done;
  let changed = Promise.withResolvers<void>();
  const follow = async (node: string): Promise<void> => {
    let waitMs: number = retryMs.first;
    while (!signal.aborted) {
      try {
        const before = known.get(node);
        const more = before === undefined ? {} : { ifNotRevision: before.revision, waitMs: maxWaitMs };
        const answer = await source.get(node, { ...question, ...more }, signal);
        waitMs = retryMs.first;
        const wasAway = failed.delete(node);
        if (answer.t === "document") known.set(node, { node, ...answer });
        if (answer.t === "document" || wasAway) changed.resolve();
        if (!source.isLive) return;
        // Whoever answers at once that nothing has changed is not asked at once again.
        await pause(calmMs, signal);
      } catch (caught) {
        if (signal.aborted) return;
        if (!failed.has(node)) io.stderr(`${printableLines(CniError.from(caught, `ask node "${node}"`).message)}\n`);
        failed.add(node);
        await pause(waitMs, signal);
        waitMs = Math.min(waitMs * 2, retryMs.longest);
      }
    }
  };
  const following = Promise.all(nodes.map(follow));
  let isOver = false;
  following.then(() => {
    isOver = true;
    changed.resolve();
  });
  while (!isOver) {
    await changed.promise;
    await pause(calmMs, signal);
    changed = Promise.withResolvers<void>();
    const printed = nodes.flatMap((node) => known.get(node) ?? []);
    if (printed.length > 0) status = show(printed, []);
  }
  return failed.size > 0 ? exitStatus.cannotTell : status;
}
