import type { BackoffTimes } from "../../shared/async/backoff.ts";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { withTimeout } from "../../shared/async/with-timeout.ts";
import type { KubernetesEvents } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import type { Ip } from "../../shared/net/ip.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { ServicesConfig } from "../config/agent-config.ts";
import type { RefusedService, ServicePort, ServiceProxy } from "../datapath/services.ts";
import type { AgentMeter, AgentSamples } from "../metrics/meter.ts";
import type { ServiceProblem } from "./decide.ts";
import { HealthChecks } from "./health-checks.ts";
import { ServiceMeasures } from "./service-measures.ts";
import type { ServiceSource } from "./service-source.ts";
import { type Traced, type TracedPacket, traceService } from "./trace-service.ts";

export interface NodeServicesOptions {
  readonly source: ServiceSource;
  readonly proxy: ServiceProxy;
  /** This one, as Kubernetes calls it. */
  readonly node: string;
  /** Where kube-proxy has what comes from outside (`proxyAll: false`), it answers load balancers' questions, too. */
  readonly config: Pick<ServicesConfig, "proxyAll" | "nodePortAddresses">;
  /** Absent: Kubernetes is told nothing. */
  readonly events?: Pick<KubernetesEvents, "tell">;
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
const noProblems: ReadonlyMap<string, readonly ServiceProblem[]> = new Map();
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
  /** Of the source, as far as they were told. */
  #problems: ReadonlyMap<string, readonly ServiceProblem[]> = noProblems;

  constructor(options: NodeServicesOptions) {
    this.#options = options;
    this.#times = options.times ?? usualTimes;
    this.#measures = new ServiceMeasures(options.source, options.meter);
    const { config, node, logger } = options;
    if (config.proxyAll)
      this.#healthChecks = new HealthChecks({
        node,
        isHealthy: () => this.#away === undefined,
        // The reason that kube-proxy has for it.
        lacks: (service, error) => {
          logger.warn("load balancers cannot ask for the health of a service", { service, error });
          this.#tell(service, "FailedToStartServiceHealthcheck", error);
        },
      });
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
    const own = (this.#problems.get(serviceOf(key)) ?? []).filter((problem) => problem.key === key);
    const all = [this.#refused.get(key)?.reason ?? [], own.map(({ message }) => message)].flat();
    return all.length === 0 ? undefined : all.join("; ");
  }

  /** @param nodeAddresses this node's own, without loopback */
  trace(packet: TracedPacket, nodeAddresses: readonly Ip[]): Traced {
    return traceService({ ...this.#options.config, ports: this.wanted.values(), nodeAddresses }, packet);
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

  /** Why the source is not followed, where it is not: what is in force stays meanwhile. */
  get fault(): string | undefined {
    return this.#options.source.fault;
  }

  /** What people are to know of single services, in sentences. */
  get degraded(): readonly string[] {
    const { problems = noProblems } = this.#options.source;
    return [
      ...some(
        [...this.#refused.values()],
        ({ key, reason }) => `Service "${key}" is not in force as it is to be: ${reason}`,
      ),
      ...some(sentencesOf(problems), (sentence) => sentence),
      ...some([...(this.#healthChecks?.problems ?? [])], ([service, message]) => `Service "${service}": ${message}`),
    ];
  }

  /** What is not in force as it is to be, in sentences. A data path that is away fails no status. */
  async differences(): Promise<readonly string[]> {
    if (this.#applied === undefined) return [];
    try {
      return some(await this.#options.proxy.differences(), (difference) => difference);
    } catch (caught) {
      return [`what is in force is not known: ${reasonOf(caught)}`];
    }
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

  #changed(): void {
    if (this.#options.source.current === undefined || this.#ended.signal.aborted) return;
    this.#measures.queued();
    this.#heard.resolve();
    this.#tellProblems();
    this.#working?.abort();
    this.#loop.trigger();
  }

  /** What the source says anew of single services. */
  #tellProblems(): void {
    const { problems = noProblems } = this.#options.source;
    if (problems === this.#problems) return;
    const before = this.#problems;
    this.#problems = problems;
    const fresh = [...problems].filter(([service, of]) => of !== before.get(service));
    for (const error of some(sentencesOf(fresh), (sentence) => sentence))
      this.#options.logger.warn("a service is not in force as it says", { error });
    for (const [service, of] of fresh) for (const { reason, message } of of) this.#tell(service, reason, message);
  }

  /** @param service `namespace/name` */
  #tell(service: string, reason: string, message: string): void {
    const { source, events } = this.#options;
    const of = source.referenceOf?.(service);
    if (of === undefined) return;
    const { namespace, name, uid } = of;
    events?.tell({ kind: "Service", of: { namespace, name, uid }, reason, message });
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
    const before = this.#refused;
    this.#refused = new Map(refused.map((each) => [each.key, each]));
    for (const { key, reason } of refused)
      if (before.get(key)?.reason !== reason) this.#tell(serviceOf(key), "NotInForce", `${key}: ${reason}`);
    // A newer state is next.
    if (working.signal.aborted) return undefined;
    this.#applied = wanted;
    this.#measures.applied();
    // Only what is in force may be asked for.
    this.#healthChecks?.serve(source.healthChecks ?? new Map());
    const [first] = refused;
    if (first === undefined) return undefined;
    return `${refused.length} service ports are refused, the first of them "${first.key}": ${first.reason}`;
  }
}

/** `namespace/name` of a port of it. */
const serviceOf = (key: string): string => key.split(/[/:]/, 2).join("/");

const sentencesOf = (problems: Iterable<readonly [service: string, of: readonly ServiceProblem[]]>): string[] =>
  [...problems].flatMap(([service, of]) => of.map(({ message }) => `Service "${service}": ${message}`));

/** As many sentences as somebody reads. */
function some<T>(of: readonly T[], sentence: (one: T) => string): string[] {
  const told = of.slice(0, maxSentences).map(sentence);
  return of.length <= maxSentences ? told : [...told, `… and ${of.length - maxSentences} more like this`];
}
