import type { Logger } from "../../../shared/log.ts";
import { LiveValue } from "../../live-value.ts";
import { pause } from "../../pause.ts";
import type { ClusterNode, Followed, ListedNode } from "../node-registry.ts";
import { sameNode } from "../node-text.ts";
import { abortable } from "../retry.ts";
import { type ApiClient, ApiRefusal, requestMs, type Silences } from "./api-client.ts";
import { isGone, listNodes } from "./node-list.ts";
import { mapIn, nodeOf } from "./node-object.ts";

export interface WatchTimes extends Silences {
  /** How long the server keeps one watch; half as long at least. */
  readonly watchMs: number;
  /** Between two attempts: doubles from the first to the second, and each waits for a random part of it. */
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
}

export const usualTimes: WatchTimes = {
  // It ends before its silence counts: until something has happened there are no bookmarks either.
  watchMs: 120_000,
  answerMs: requestMs,
  // Bookmarks come about every minute from then on.
  silenceMs: 150_000,
  retryFirstMs: 200,
  retryMostMs: 10_000,
};

/**
 * All Nodes, by a list and then by what changes: a watch that ends goes on from the last version that it told, and
 * where that is too old a new list is compared with what was known.
 */
export class NodeWatch implements Followed<ReadonlyMap<string, ClusterNode>> {
  readonly #api: ApiClient;
  readonly #times: WatchTimes;
  readonly #logger: Logger;
  readonly #value = new LiveValue<ReadonlyMap<string, ClusterNode>>();
  readonly #ended = new AbortController();
  readonly #done: Promise<void>;
  /** Absent: a list is needed. */
  #version: string | undefined;
  #said: string | undefined;

  constructor(api: ApiClient, logger: Logger, times: WatchTimes) {
    this.#api = api;
    this.#logger = logger;
    this.#times = times;
    this.#done = this.#run();
  }

  get current(): ReadonlyMap<string, ClusterNode> | undefined {
    return this.#value.current;
  }

  subscribe(listener: (value: ReadonlyMap<string, ClusterNode>) => void): Disposable {
    return this.#value.subscribe(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    const { retryFirstMs, retryMostMs } = this.#times;
    for (let mostMs = retryFirstMs; !signal.aborted; ) {
      try {
        // A server that never answers must not keep whoever ends this.
        if (this.#version === undefined) await abortable(this.#list(), signal);
        await this.#watch();
        mostMs = retryFirstMs;
        this.#said = undefined;
      } catch (caught) {
        if (signal.aborted) return;
        if (isGone(caught)) this.#version = undefined;
        this.#say(caught);
        mostMs = Math.min(mostMs * 2, retryMostMs);
      }
      await pause(mostMs * Math.random(), signal);
    }
  }

  async #list(): Promise<void> {
    const { nodes, resourceVersion } = await listNodes(this.#api);
    this.#version = resourceVersion;
    this.#publish(new Map([...nodes].map(([name, node]) => [name, plain(node)])));
  }

  async #watch(): Promise<void> {
    const { watchMs } = this.#times;
    const query = new URLSearchParams({
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: this.#version ?? "",
      // Of many nodes, not all come again at once.
      timeoutSeconds: String(Math.ceil((watchMs * (0.5 + Math.random() / 2)) / 1000)),
    });
    for await (const event of this.#api.lines(`/api/v1/nodes?${query}`, this.#times, this.#ended.signal))
      this.#take(event["type"], event["object"]);
  }

  #take(type: unknown, object: unknown): void {
    if (type === "ERROR") {
      const { code, message } = mapIn({ object }, "object");
      throw new ApiRefusal(typeof code === "number" ? code : 500, String(message ?? "an error without a word"));
    }
    const version = mapIn(object, "metadata")["resourceVersion"];
    if (typeof version !== "string" || version === "") throw new Error("an event of the watch has no resourceVersion");
    const node = type === "BOOKMARK" ? undefined : nodeOf(object);
    const before = this.#value.current ?? new Map<string, ClusterNode>();
    if (node !== undefined && type === "DELETED" && before.has(node.name))
      this.#publish(new Map([...before].filter(([name]) => name !== node.name)));
    // Most changes of a Node are of its conditions, which no peer asks for.
    else if (node !== undefined && type !== "DELETED" && !sameNode(before.get(node.name), plain(node)))
      this.#publish(new Map(before).set(node.name, plain(node)));
    this.#version = version;
  }

  #publish(nodes: ReadonlyMap<string, ClusterNode>): void {
    this.#value.set(nodes);
  }

  #say(caught: unknown): void {
    const error = Error.isError(caught) ? caught.message : String(caught);
    if (error === this.#said) return;
    this.#said = error;
    this.#logger.warn("the nodes of Kubernetes cannot be followed, and are asked for again", { error });
  }
}

const plain = ({ state: _, problem: __, ...node }: ListedNode): ClusterNode => node;
