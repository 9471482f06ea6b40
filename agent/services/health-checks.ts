import { reasonOf } from "../../shared/reason.ts";
import type { HealthCheck } from "./decide.ts";

export interface HealthChecksOptions {
  /** This one, for messages. */
  readonly node: string;
  /** Whether what there is to be is in force. */
  isHealthy(): boolean;
  /** The port is not had; called once for the same reason. @param service `namespace/name` */
  lacks(service: string, message: string): void;
  /** Before a port that somebody else has is tried again; absent: 10 s. */
  readonly retryMs?: number;
}

/** A load balancer's connection lasts for one probe. */
const idleSeconds = 5;
const usualRetryMs = 10_000;

interface Served {
  check: HealthCheck;
  readonly server: Bun.Server<undefined>;
}

/**
 * Answers load balancers at the health-check node ports of services with `externalTrafficPolicy: Local`: 200 where a pod
 * of this node takes new connections, else 503, so that those who keep their address are sent to no other node.
 */
export class HealthChecks implements AsyncDisposable {
  readonly #options: HealthChecksOptions;
  /** By `namespace/name`, as those below. */
  readonly #served = new Map<string, Served>();
  readonly #lacking = new Map<string, string>();
  #wanted: ReadonlyMap<string, HealthCheck> = new Map();
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: HealthChecksOptions) {
    this.#options = options;
  }

  /** By `namespace/name`: why nobody is answered. */
  get problems(): ReadonlyMap<string, string> {
    return this.#lacking;
  }

  /** Serves exactly these. Ports that cannot be had are tried again. */
  serve(wanted: ReadonlyMap<string, HealthCheck>): void {
    if (wanted === this.#wanted) return;
    this.#wanted = wanted;
    for (const [name, { check, server }] of this.#served) {
      if (wanted.get(name)?.port === check.port) continue;
      this.#served.delete(name);
      void server.stop(true);
    }
    for (const name of this.#lacking.keys()) if (!wanted.has(name)) this.#lacking.delete(name);
    for (const [name, check] of wanted) this.#serveOne(name, check);
    this.#tryAgainLater();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#retry);
    this.#wanted = new Map();
    await Promise.all(Array.from(this.#served.values(), ({ server }) => server.stop(true)));
    this.#served.clear();
  }

  #serveOne(name: string, check: HealthCheck): void {
    const served = this.#served.get(name);
    if (served !== undefined) {
      served.check = check;
      return;
    }
    try {
      const server = Bun.serve({
        // Both families.
        hostname: "::",
        port: check.port,
        idleTimeout: idleSeconds,
        maxRequestBodySize: 1024,
        development: false,
        fetch: () => this.#answer(name),
      });
      this.#served.set(name, { check, server });
      this.#lacking.delete(name);
    } catch (caught) {
      const is = caught instanceof Error && "code" in caught ? String(caught.code) : reasonOf(caught);
      const problem = `its health is not told: port ${check.port} of node "${this.#options.node}" cannot be had (${is})`;
      if (this.#lacking.get(name) === problem) return;
      this.#lacking.set(name, problem);
      this.#options.lacks(name, problem);
    }
  }

  #tryAgainLater(): void {
    clearTimeout(this.#retry);
    if (this.#lacking.size === 0) return;
    this.#retry = setTimeout(() => {
      for (const name of [...this.#lacking.keys()]) {
        const check = this.#wanted.get(name);
        if (check !== undefined) this.#serveOne(name, check);
      }
      this.#tryAgainLater();
    }, this.#options.retryMs ?? usualRetryMs);
    this.#retry.unref();
  }

  /** As kube-proxy answers, which load balancers' set-ups are written for. */
  #answer(key: string): Response {
    const [namespace = "", name = ""] = key.split("/");
    const localEndpoints = this.#served.get(key)?.check.localEndpoints ?? 0;
    const serviceProxyHealthy = this.#options.isHealthy();
    const headers = {
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
      "x-load-balancing-endpoint-weight": String(localEndpoints),
    };
    const status = localEndpoints > 0 && serviceProxyHealthy ? 200 : 503;
    const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy };
    return new Response(`${JSON.stringify(body)}\n`, { status, headers });
  }
}
