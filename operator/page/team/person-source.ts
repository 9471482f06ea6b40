import { pause } from "../../../shared/async/abortable.ts";
import type { NodeKind, NodesDocument } from "../../../shared/documents/mod.ts";
import type { Answer, DocumentSource, Question } from "../../document-source.ts";
import { type Person, wishes } from "./person.ts";

/** While a question waits for a change: who loses the right to it waits no longer. */
const lookMs = 5_000;

/** Agents behind the API server, each by a name that rights can be given for. */
export interface AgentsSource extends DocumentSource {
  /** What the API server calls a node's agent where it passes a question on: `https:NAME:PORT`. */
  proxyNameOf(node: string, signal: AbortSignal): Promise<string>;
}

/**
 * Documents as one person may see them: each question is theirs first, as the API server decides it, and what is answered
 * to it they get if they still may. The tool would be let in by the same rights.
 */
export class PersonSource implements DocumentSource {
  readonly title: string;
  readonly isLive: boolean;
  readonly #agents: AgentsSource;
  readonly #person: Person;
  readonly #namespace: string;

  /** @param namespace in which the agents are */
  constructor(agents: AgentsSource, person: Person, namespace: string) {
    this.title = agents.title;
    this.isLive = agents.isLive;
    this.#agents = agents;
    this.#person = person;
    this.#namespace = namespace;
  }

  async nodes(signal: AbortSignal): Promise<readonly string[]> {
    await this.#person.must(wishes.agents(this.#namespace));
    return await this.#agents.nodes(signal);
  }

  async cluster(signal: AbortSignal): Promise<NodesDocument> {
    await this.#person.must(wishes.nodes);
    await this.#person.must(wishes.agents(this.#namespace));
    return await this.#agents.cluster(signal);
  }

  async get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    await this.#mustAsk(node, signal);
    const done = new AbortController();
    const work = this.#agents.get(node, question, AbortSignal.any([signal, done.signal]));
    const watching = this.#untilRefused(node, done.signal).then(() => work);
    try {
      const answer = await Promise.race([work, watching]);
      await this.#mustAsk(node, signal);
      return answer;
    } finally {
      done.abort(new Error("nobody waits for the answer any more"));
      for (const rest of [work, watching]) rest.catch(() => undefined);
    }
  }

  /** The agents are others' as well. */
  async [Symbol.asyncDispose](): Promise<void> {}

  async #mustAsk(node: string, signal: AbortSignal): Promise<void> {
    await this.#person.must(wishes.agents(this.#namespace));
    await this.#person.must(wishes.token(this.#namespace));
    await this.#person.must(wishes.agent(this.#namespace, await this.#agents.proxyNameOf(node, signal)));
  }

  /** @throws {Refusal} once they may not */
  async #untilRefused(node: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(lookMs, signal);
      if (!signal.aborted) await this.#mustAsk(node, signal);
    }
  }
}
