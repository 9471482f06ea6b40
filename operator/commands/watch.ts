import { pause } from "../../shared/async/abortable.ts";
import type { NodeKind } from "../../shared/documents/mod.ts";
import { CniError } from "../../shared/errors.ts";
import { printableLines } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { type DocumentSource, maxWaitMs } from "../document-source.ts";
import { type NodeSaid, saidBy, type Wanted } from "../node-report.ts";

/** After a node did not answer, until it is asked again: doubles from the first to the second. */
const retryMs = { first: 500, longest: 30_000 };
/** Between two looks that are printed: what changes at once is one change. */
const calmMs = 100;

/** One document of a node. */
interface Known {
  readonly revision: string;
  readonly atMs: number;
  readonly document: unknown;
}

interface Watched<K extends NodeKind> {
  readonly source: DocumentSource;
  readonly nodes: readonly string[];
  readonly wanted: Wanted<K>;
  readonly show: (said: readonly NodeSaid<K>[]) => Promise<void>;
}

/**
 * Shows the nodes again whenever a document of one changes. A node that does not answer is named once, and asked again
 * later; its last documents stay until then.
 * @returns how many nodes did not answer last, once the signal is aborted or nothing can change
 */
export async function watchNodes<K extends NodeKind>(
  { source, nodes, wanted, show }: Watched<K>,
  io: TerminalIo,
  signal: AbortSignal,
): Promise<number> {
  const known = new Map(nodes.map((node) => [node, new Map<K, Known>()]));
  const failed = new Map(nodes.map((node) => [node, new Set<K>()]));
  let changed = Promise.withResolvers<void>();
  const follow = async (node: string, kind: K): Promise<void> => {
    const [documents, silent] = [known.get(node), failed.get(node)];
    if (documents === undefined || silent === undefined) return;
    let waitMs: number = retryMs.first;
    while (!signal.aborted) {
      try {
        const before = documents.get(kind);
        const more = before === undefined ? {} : { ifNotRevision: before.revision, waitMs: maxWaitMs };
        const name = wanted.name === undefined ? {} : { name: wanted.name };
        const answer = await source.get(node, { kind, ...name, ...more }, signal);
        waitMs = retryMs.first;
        const wasAway = silent.delete(kind);
        if (answer.t === "document") documents.set(kind, answer);
        if (answer.t === "document" || wasAway) changed.resolve();
        if (!source.isLive) return;
        // Whoever answers at once that nothing has changed is not asked at once again.
        await pause(calmMs, signal);
      } catch (caught) {
        if (signal.aborted) return;
        if (silent.size === 0) io.stderr(`${printableLines(CniError.from(caught, `ask node "${node}"`).message)}\n`);
        silent.add(kind);
        if (!source.isLive) return;
        await pause(waitMs, signal);
        waitMs = Math.min(waitMs * 2, retryMs.longest);
      }
    }
  };
  const following = Promise.all(nodes.flatMap((node) => wanted.kinds.map((kind) => follow(node, kind))));
  let isOver = false;
  following.then(() => {
    isOver = true;
    changed.resolve();
  });
  while (!isOver) {
    await changed.promise;
    await pause(calmMs, signal);
    changed = Promise.withResolvers<void>();
    const said: readonly NodeSaid<K>[] = nodes.flatMap((node) => {
      const documents = known.get(node);
      return documents?.size === wanted.kinds.length ? [saidBy(node, documents)] : [];
    });
    if (said.length > 0) await show(said);
  }
  return [...failed.values()].filter(({ size }) => size > 0).length;
}
