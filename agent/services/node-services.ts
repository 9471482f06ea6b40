import type { BackoffTimes } from "../../shared/async/backoff.ts";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { withTimeout } from "../../shared/async/with-timeout.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { RefusedService, ServicePort, ServiceProxy } from "../datapath/services.ts";
import type { AgentMeter, AgentSamples } from "../metrics/meter.ts";
import type { HealthCheck } from "./decide.ts";
import { HealthChecks } from "./health-checks.ts";
import { ServiceMeasures } from "./service-measures.ts";
import type { ServiceSource } from "./service-source.ts";

export interface NodeServicesOptions {
  readonly source: ServiceSource;
  readonly proxy: ServiceProxy;
  /** Whether load balancers' questions at ports of the node are answered. */
  readonly answersHealthChecks: boolean;
  readonly logger: Logger;
  readonly meter?: AgentMeter | undefined;
  /** Absent: the usual ones. */
  readonly times?: ServiceTimes;
}

export interface ServiceTimes {
  /** How long the start of the agent waits for the source, and then for the data path: pods are not to wait for long. */
  readonly sourceMs: number;
  readonly applyMs: number;
  /** Before what was refused, or could not be done, is tried again; a newer state does not wait for it. */
  readonly retry: BackoffTimes;
}

const usualTimes: ServiceTimes = { sourceMs: 2_000, applyMs: 30_000, retry: { firstMs: 1_000, longestMs: 60_000 } };
const none: ReadonlyMap<string, HealthCheck> = new Map();
/** Sentences of one kind that people are told. */
const maxSentences = 20;

/**
 * Services on this node: has the data path put in force what the source says. Only the latest state counts: what comes
 * while the data path works ends that and goes together into the next change. Until the source knows all, and while it
 * or the data path is away, what is in force stays.
 */
export class NodeServices implements AsyncDisposable {
  readonly #options: NodeServicesOptions;
  readonly #times: ServiceTimes;
  readonly #heard = Promise.withResolvers<void>();
  readonly #loop: ReconcileLoop;
  readonly #ended = new AbortController();
  readonly #healthChecks: HealthChecks | undefined;
  #subscription: Disposable | undefined;
  /** Of the change that is under way. */
  #working: AbortController | undefined;
  #applied: ReadonlyMap<string, ServicePort> | undefined;
  /** Why nothing can be changed, since the last attempt. */
  #away: string | undefined;
  #refused: ReadonlyMap<string, RefusedService> = new Map();
  readonly #measures: ServiceMeasures;

  constructor(options: NodeServicesOptions) {
    this.#options = options;
    this.#times = options.times ?? usualTimes;
    this.#measures = new ServiceMeasures(options.source, options.meter);
    const { answersHealthChecks, logger } = options;
    if (answersHealthChecks)
      this.#healthChecks = new HealthChecks({ isHealthy: () => this.#away === undefined, logger });
    this.#loop = new ReconcileLoop({
      what: "the set of services in force",
      reconcile: () => this.#apply(),
      logger,
      retry: this.#times.retry,
    });
  }

  /** Follows the source; answers when its first state is in force, or when that has taken too long. */
  async begin(): Promise<void> {
    this.#subscription = this.#options.source.subscribe(() => this.#changed());
    await withTimeout(this.#heard.promise, this.#times.sourceMs, () => undefined);
    if (this.#options.source.current === undefined) return;
    // What it fails for is logged by the loop, which tries it again.
    await withTimeout(
      this.#loop.run().catch(() => undefined),
      this.#times.applyMs,
      () => undefined,
    );
  }

  /** By key, what there is to be; none until the source knows all. */
  get wanted(): ReadonlyMap<string, ServicePort> {
    return this.#options.source.current ?? new Map();
  }

  /** Why a service port is not, or not wholly, in force. */
  refusalOf(key: string): string | undefined {
    return this.#refused.get(key)?.reason;
  }

  /** One sentence for people. */
  get summary(): string {
    const { current, fault } = this.#options.source;
    if (current === undefined) return `services: none are known yet${fault === undefined ? "" : `: ${fault}`}`;
    const state = this.#applied === current ? "in force" : "being put in force";
    const refused = this.#refused.size === 0 ? "" : `, ${this.#refused.size} of them refused`;
    const { summary } = this.#options.proxy;
    return `services: ${current.size} ports ${state}${refused}${summary === undefined ? "" : `; ${summary}`}`;
  }

  /** Tells a scrape what is in force. */
  measure(samples: AgentSamples): void {
    this.#measures.tell(samples, this.wanted, this.#refused.size);
  }

  /** What people are to know, in sentences. It compares all with what is in force. */
  async degraded(): Promise<readonly string[]> {
    const { fault } = this.#options.source;
    const { problems = [] } = this.#options.source;
    return [
      ...(fault === undefined ? [] : [`The services are not followed, and those in force stay: ${fault}`]),
      ...some(
        [...this.#refused.values()],
        ({ key, reason }) => `Service "${key}" is not in force as it is to be: ${reason}`,
      ),
      ...some(problems, (problem) => problem),
      ...some(this.#healthChecks?.problems ?? [], (problem) => problem),
      ...(this.#applied === undefined ? [] : await this.#compared()),
    ];
  }

  /** What is not in force as it is to be, in sentences. @throws {CniError} */
  differences(): Promise<readonly string[]> {
    return this.#options.proxy.differences();
  }

  /** What is in force stays: pods use it while no agent runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    this.#subscription?.[Symbol.dispose]();
    this.#working?.abort();
    await this.#loop[Symbol.asyncDispose]();
    await this.#healthChecks?.[Symbol.asyncDispose]();
    await this.#options.source[Symbol.asyncDispose]();
  }

  /** A data path that is away fails no status. */
  async #compared(): Promise<readonly string[]> {
    try {
      return some(await this.differences(), (difference) => difference);
    } catch (caught) {
      return [`What is in force of the services is not known: ${reasonOf(caught)}`];
    }
  }

  #changed(): void {
    if (this.#options.source.current === undefined || this.#ended.signal.aborted) return;
    this.#measures.queued();
    this.#heard.resolve();
    this.#working?.abort();
    this.#loop.trigger();
  }

  /** Answers what was refused, so that it is tried again. @throws {CniError} where nothing can be changed now */
  async #apply(): Promise<string | undefined> {
    const { source, proxy } = this.#options;
    const wanted = source.current;
    if (wanted === undefined) return undefined;
    const working = new AbortController();
    this.#working = working;
    let refused: readonly RefusedService[];
    try {
      refused = await this.#measures.sync(() => proxy.apply(wanted, working.signal));
      this.#away = undefined;
    } catch (caught) {
      this.#away = reasonOf(caught);
      throw caught;
    } finally {
      this.#working = undefined;
    }
    this.#refused = new Map(refused.map((each) => [each.key, each]));
    // A newer state is next.
    if (working.signal.aborted) return undefined;
    this.#applied = wanted;
    this.#measures.applied();
    // Only what is in force may be asked for.
    this.#healthChecks?.serve(source.healthChecks ?? none);
    const [first] = refused;
    if (first === undefined) return undefined;
    return `${refused.length} service ports are refused, the first of them "${first.key}": ${first.reason}`;
  }
}

/** As many sentences as somebody reads. */
function some<T>(of: readonly T[], sentence: (one: T) => string): string[] {
  const told = of.slice(0, maxSentences).map(sentence);
  return of.length <= maxSentences ? told : [...told, `… and ${of.length - maxSentences} more like this`];
}
