import { ReconcileLoop } from "../async/reconcile-loop.ts";
import type { Logger } from "../log.ts";
import type { ApiClient } from "./api-client.ts";
import { ApiError } from "./api-error.ts";

/** What `kubectl describe` shows of a pod, a policy or a service. */
export interface Happening {
  readonly kind: keyof typeof apiVersions;
  readonly of: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** One word, for programs. */
  readonly reason: string;
  readonly message: string;
  /** What makes it the same as an earlier one; absent: the message. For those whose words differ each time. */
  readonly sameAs?: string;
}

export interface KubernetesEventsOptions {
  readonly node: string;
  /** To the API server; a client for this to close. */
  connect(): ApiClient;
  readonly logger: Logger;
  /** Absent: the usual ones. */
  readonly times?: { readonly againMs: number; readonly refusedMs: number };
}

/**
 * After an hour the API server has forgotten an event, and what is still so is told again. One that it refused is tried
 * again after some minutes: a right may have been given meanwhile.
 */
const usualTimes = { againMs: 65 * 60_000, refusedMs: 5 * 60_000 };

/** That wait while the API server is away; more are only logged, as all are. */
const maxWaiting = 100;
/** That are remembered as told or refused. */
const maxTold = 10_000;
/** Of an object's name in an event's, which has 253 at the most. */
const maxNameChars = 200;
/** Longer ones are refused. */
const maxMessageChars = 1024;

const apiVersions = { Node: "v1", Pod: "v1", Service: "v1", NetworkPolicy: "networking.k8s.io/v1" } as const;

/**
 * Tells Kubernetes what happens to nodes, pods, policies and services, as Events. The same is told once as long as the API server
 * remembers it, also by many nodes: an event's name says what it tells, so that the API server refuses the second.
 */
export class KubernetesEvents implements AsyncDisposable {
  readonly #options: KubernetesEventsOptions;
  readonly #loop: ReconcileLoop;
  readonly #waiting = new Map<string, { readonly happening: Happening; readonly at: string }>();
  /** Until when it is not told again, by `performance.now`. */
  readonly #done = new Map<string, number>();
  /** Once, until one is taken again. */
  #isRefusalLogged = false;

  constructor(options: KubernetesEventsOptions) {
    this.#options = options;
    const { logger } = options;
    this.#loop = new ReconcileLoop({
      ...{ what: "what Kubernetes is told in Events", logger, isDamped: true },
      reconcile: async () => {
        await this.#send();
        return undefined;
      },
    });
  }

  tell(happening: Happening): void {
    const name = nameOf(happening);
    if ((this.#done.get(name) ?? 0) > performance.now()) return;
    if (this.#waiting.has(name) || this.#waiting.size >= maxWaiting) return;
    this.#waiting.set(name, { happening, at: `${new Date().toISOString().slice(0, 19)}Z` });
    this.#loop.trigger();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }

  /** @throws {ApiError} */
  async #send(): Promise<void> {
    if (this.#waiting.size === 0) return;
    await using client = this.#options.connect();
    const { againMs, refusedMs } = this.#options.times ?? usualTimes;
    for (const [name, { happening, at }] of this.#waiting) {
      const { namespace } = happening.of;
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
      try {
        await client.create(
          { path, action: `tell of ${happening.kind} "${namespace}/${happening.of.name}"` },
          {
            ...eventOf(happening, this.#options.node, at),
            metadata: { name, namespace },
          },
        );
        this.#isRefusalLogged = false;
        this.#end(name, againMs);
      } catch (caught) {
        this.#end(name, this.#isTold(caught) ? againMs : refusedMs);
      }
    }
  }

  #end(name: string, restMs: number): void {
    this.#waiting.delete(name);
    if (this.#done.size >= maxTold) this.#done.clear();
    this.#done.set(name, performance.now() + restMs);
  }

  /** @returns whether another has told it; `false`: it is refused @throws what may be otherwise the next time */
  #isTold(caught: unknown): boolean {
    if (!(caught instanceof ApiError && [403, 404, 409].includes(caught.status ?? 0))) throw caught;
    if (caught.status === 409) return true;
    // A pod's namespace may be going, which is a 403 as well, and nothing to tell anybody of.
    if (caught.is.includes("is being terminated") || this.#isRefusalLogged) return false;
    this.#isRefusalLogged = true;
    this.#options.logger.warn(
      caught.status === 404
        ? "Kubernetes takes no Event: the namespace or the kind is not there"
        : "Kubernetes is not told of pods, policies and services: give the agent the right to create events",
      { error: caught.message },
    );
    return false;
  }
}

function nameOf({ kind, of, reason, message, sameAs = message }: Happening): string {
  const digest = new Bun.CryptoHasher("sha256").update([kind, of.uid, reason, sameAs].join("\n")).digest("hex");
  return `${of.name.slice(0, maxNameChars)}.${digest.slice(0, 16)}`;
}

const eventOf = ({ kind, of, reason, message }: Happening, node: string, at: string): object => ({
  apiVersion: "v1",
  kind: "Event",
  involvedObject: { apiVersion: apiVersions[kind], kind, ...of },
  ...{ type: "Warning", reason, message: message.slice(0, maxMessageChars) },
  source: { component: "pipette-agent", host: node },
  ...{ firstTimestamp: at, lastTimestamp: at, count: 1 },
  ...{ reportingComponent: "pipette.io/agent", reportingInstance: node },
});
