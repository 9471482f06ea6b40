import { CniError } from "../shared/errors.ts";

/** Nodes that are asked at a time: an API server serves others too. */
const atATime = 12;
/** Until one node has answered; its silence is no reason to say nothing of the others. */
const nodeMs = 30_000;

/** What one of several nodes says. */
export interface NodeAnswer<T> {
  readonly node: string;
  readonly answer: T;
}

export interface NodeFailure {
  readonly node: string;
  readonly reason: string;
}

export interface NodeAnswers<T> {
  /** In the order of the nodes. */
  readonly answers: readonly NodeAnswer<T>[];
  readonly failures: readonly NodeFailure[];
}

/** Asks each of these nodes; one that fails is named, and the others are there. */
export async function askEach<T>(
  nodes: readonly string[],
  signal: AbortSignal,
  ask: (node: string, signal: AbortSignal) => Promise<T>,
): Promise<NodeAnswers<T>> {
  const found = new Map<string, T>();
  const failed = new Map<string, string>();
  const waiting = [...nodes];
  const work = async (): Promise<void> => {
    for (let node = waiting.shift(); node !== undefined; node = waiting.shift()) {
      const late = AbortSignal.timeout(nodeMs);
      try {
        found.set(node, await ask(node, AbortSignal.any([signal, late])));
      } catch (caught) {
        const reason = late.aborted
          ? `Cannot ask node "${node}": there is no answer after ${nodeMs} ms`
          : CniError.from(caught, `ask node "${node}"`).message;
        failed.set(node, reason);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atATime, nodes.length) }, work));
  return {
    answers: nodes.flatMap((node) => (found.has(node) ? [{ node, answer: found.get(node) as T }] : [])),
    failures: nodes.flatMap((node) => (failed.has(node) ? [{ node, reason: failed.get(node) ?? "" }] : [])),
  };
}
