import type { NodeTrace, StartTrace } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { NodeFailure } from "../ask-nodes.ts";
import { askEach } from "../ask-nodes.ts";
import type { DocumentSource } from "../document-source.ts";

/** How long one question waits for news. */
const newsMs = 5_000;
/** Until a node has begun to look out: people wait. */
const beginMs = 10_000;
/** Until it has ended; where that fails, it ends by itself. */
const endMs = 3_000;

type Ask = NonNullable<DocumentSource["trace"]>;

/** What one node sees of a trace, as its agent last said. */
export class NodeSession {
  readonly node: string;
  readonly #ask: Ask;
  #last: NodeTrace;
  /** Why it cannot be asked any more. */
  failure: string | undefined;

  private constructor(node: string, ask: Ask, last: NodeTrace) {
    this.node = node;
    this.#ask = ask;
    this.#last = last;
  }

  /** @throws {CniError} */
  static async start(
    source: DocumentSource,
    node: string,
    request: Omit<StartTrace, "t">,
    signal: AbortSignal,
  ): Promise<NodeSession> {
    const ask: Ask | undefined = source.trace?.bind(source);
    if (ask === undefined)
      throw new CniError(CniCode.notAvailable, `Cannot trace packets: ${source.title} has no agent, wanted one`);
    const late = AbortSignal.any([signal, AbortSignal.timeout(beginMs)]);
    return new NodeSession(node, ask, await ask(node, { t: "start", ...request }, late));
  }

  get last(): NodeTrace {
    return this.#last;
  }

  get isOver(): boolean {
    return this.failure !== undefined || this.#last.state === "ended";
  }

  /** Waits for news, at most so long. */
  async news(withinMs: number, signal: AbortSignal): Promise<void> {
    if (this.isOver) return;
    const { session, revision: after } = this.#last;
    const waitMs = Math.max(0, Math.min(newsMs, Math.round(withinMs)));
    try {
      this.#last = await this.#ask(this.node, { t: "collect", session, after, waitMs }, signal);
    } catch (caught) {
      this.failure = CniError.from(caught, `trace packets on node "${this.node}"`).message;
    }
  }

  /** Its flows go at once; where it cannot be told so, by themselves. */
  async end(): Promise<void> {
    const { session } = this.#last;
    if (this.failure !== undefined) return;
    await this.#ask(this.node, { t: "end", session }, AbortSignal.timeout(endMs)).catch(() => undefined);
  }
}

/** Begins on each of these nodes; those that fail are named. */
export async function beginOn(
  source: DocumentSource,
  nodes: readonly string[],
  request: Omit<StartTrace, "t">,
  signal: AbortSignal,
): Promise<{ readonly sessions: readonly NodeSession[]; readonly failures: readonly NodeFailure[] }> {
  const begun = await askEach(nodes, signal, (node, each) => NodeSession.start(source, node, request, each));
  return { sessions: begun.answers.map(({ answer }) => answer), failures: begun.failures };
}
