import { hostname } from "node:os";
import { ClusterAccess, noTrust, operatorToken } from "../shared/access/mod.ts";
import { retry } from "../shared/async/backoff.ts";
import {
  type CertificateSource,
  FollowedCertificates,
  GivenCertificates,
  type Kept,
  renewed,
} from "../shared/certificates/mod.ts";
import {
  answerScrape,
  type Exchange,
  type Guard,
  HttpsServer,
  metricsPath,
  refuse,
  type ServerTls,
} from "../shared/https/mod.ts";
import { ApiClient, serviceAccountAccess } from "../shared/kubernetes/mod.ts";
import type { Logger } from "../shared/log.ts";
import { contentType, type Reader, Registry, readProcess } from "../shared/metrics/mod.ts";
import { reasonOf } from "../shared/reason.ts";
import type { MetricsConfig } from "./config/metrics-config.ts";
import { agentMetrics } from "./metrics/agent-metrics.ts";
import type { AgentMeter } from "./metrics/meter.ts";
import { answerOperator, type Documents, type LogLevels } from "./views/mod.ts";

/** Some Prometheus servers, API servers and people; every pod of the node can connect, too. */
const maxConnections = 32;
/** Of a connection that has not brought anybody who is known. */
const strangerMs = 5_000;
/** Until the port can be had: an earlier agent may have it for a moment. */
const retryTimes = { firstMs: 500, longestMs: 30_000, jitter: 0.5 };

export interface HttpsOptions {
  readonly logger: Logger;
  readonly logLevels: LogLevels;
  /** This node, for whose agent an operator's token has to be. */
  readonly node: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * What an agent tells others by HTTPS: its numbers to Prometheus, its documents to operators. The agent does not wait
 * for it, and does not end for it: a node that tells nothing still has pods.
 */
export class AgentHttps implements AsyncDisposable {
  readonly #registry = new Registry(agentMetrics);
  readonly #ended = new AbortController();
  readonly #serving: Promise<void>;
  #documents: Documents | undefined;

  constructor(config: MetricsConfig, options: HttpsOptions) {
    this.#registry.read(readProcess);
    this.#serving = this.#serve(config, options).catch((caught: unknown) => {
      if (!this.#ended.signal.aborted) options.logger.error("metrics are not served", { error: reasonOf(caught) });
    });
  }

  get meter(): AgentMeter {
    return this.#registry;
  }

  /** Asked at every scrape from now on. */
  read(reader: Reader<typeof agentMetrics>): void {
    this.#registry.read(reader);
  }

  /** Asked for documents from now on. */
  tell(documents: Documents): void {
    this.#documents = documents;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the agent stops"));
    await this.#serving;
  }

  /** Until the end. */
  async #serve(config: MetricsConfig, { logger, env, logLevels, node }: HttpsOptions): Promise<void> {
    const { signal } = this.#ended;
    await using resources = new AsyncDisposableStack();
    let certificates: FollowedCertificates | undefined;
    let guard: Guard | undefined;
    if (!config.plain) {
      const client = resources.use(new ApiClient(serviceAccountAccess(config, env, "metrics.server"), { env }));
      const operatorAudience = operatorToken.audienceOf(node);
      guard = new ClusterAccess({ client, logger, trust: () => noTrust, pod: () => undefined, operatorAudience });
      const following = { logger, signal, publish: async () => undefined };
      certificates = resources.use(await FollowedCertificates.start(sourceOf(config), following));
    }
    const tls = (): ServerTls | undefined =>
      certificates === undefined ? undefined : { ...certificates.serving, clientCas: [] };
    const text = (): Promise<string> => this.#registry.text();
    const answer = (exchange: Exchange): Promise<void> =>
      exchange.path === metricsPath
        ? answerScrape(exchange, { text, contentType }, guard)
        : answerOperator(exchange, { guard, documents: this.#documents, logLevels }, signal);
    const listen = (): Promise<HttpsServer> =>
      HttpsServer.listen(
        config.listen,
        tls(),
        (exchange) => void answer(exchange).catch((caught) => refuse(exchange, caught, logger)),
        { strangerMs, maxConnections },
      );
    const failed = (caught: unknown): void => logger.error("metrics are not served yet", { error: reasonOf(caught) });
    const server = resources.use(await retry(listen, { ...retryTimes, signal, failed }));
    if (certificates !== undefined)
      certificates.onReplaced = () => {
        const next = tls();
        if (next !== undefined) server.replaceTls(next);
      };
    logger.info("metrics are served", { port: server.port, plain: config.plain });
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
}

/** Given ones, or one of our own that lives as long as the process. */
function sourceOf({ certificates, listen }: MetricsConfig): CertificateSource {
  if (certificates !== undefined) return new GivenCertificates(certificates);
  const wanted = { authority: "pipette-agent", names: [hostname(), listen.host] };
  let kept: Kept | undefined;
  return {
    current: async () => {
      kept = renewed(kept, wanted, new Date());
      return kept;
    },
  };
}
