import { withTimeout } from "../../../../shared/async/with-timeout.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Logger } from "../../../../shared/log.ts";
import type { Cidr } from "../../../../shared/net/ip.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import type { FlowSetChanges, SwitchProgram } from "../program/flow-set.ts";
import { AppliedServices } from "./applied-services.ts";
import { ConntrackFlusher } from "./conntrack-flusher.ts";
import { removedEndpoints, type Service, type ServiceChange, type ServiceSource, sizeOf } from "./service.ts";
import { noServiceFlowSet } from "./service-flows.ts";

export interface ServiceReconcilerOptions {
  readonly source: ServiceSource;
  readonly program: SwitchProgram;
  readonly context: Pick<PipelineContext, "podSubnets">;
  /** Where services have their addresses. */
  readonly cidrs: readonly Cidr[];
  /** Where the bridge listens, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly logger: Logger;
}

/** Flows and groups of one bundle: some ten milliseconds of the switch's time, in which it does nothing else. */
const bundleChanges = 4_000;
/** Pauses before the next attempt; `away` is short because the attempt itself has waited for the switch. */
const retryMs = { refused: 10_000, away: 1_000 } as const;
/** How long the start waits for the source, whose file may be invalid, and for the switch to accept its services. */
const beginMs = { source: 2_000, switch: 30_000 } as const;

/** The outcome of a change. */
type Outcome = "done" | keyof typeof retryMs;

/**
 * Applies the source's services to the switch. Only the source's latest state counts: changes made while the switch is
 * busy go together into the next bundle. The switch's program restores them after a restart.
 */
export class ServiceReconciler implements AsyncDisposable {
  readonly #options: ServiceReconcilerOptions;
  readonly #applied: AppliedServices;
  readonly #subscription: Disposable;
  readonly #heard = Promise.withResolvers<void>();
  readonly #first = Promise.withResolvers<void>();
  readonly #flusher: ConntrackFlusher;
  #wanted: ReadonlyMap<string, Service> | undefined;
  #working: Promise<void> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #hasBase = false;
  #isEnded = false;

  constructor(options: ServiceReconcilerOptions) {
    this.#options = options;
    this.#applied = new AppliedServices(options.context, options.logger);
    this.#flusher = new ConntrackFlusher(options);
    this.#subscription = options.source.subscribe((services) => this.#follow(services));
  }

  /** Resolves once the source's first state, and all changes until now, have been applied or refused. */
  async synced(): Promise<void> {
    await this.#first.promise;
    while (this.#working !== undefined) await this.#working;
  }

  /**
   * As `synced` for the agent's start, with a bound, so that a source or a switch that does not answer does not delay
   * pods.
   */
  async initialSync(): Promise<void> {
    await withTimeout(this.#heard.promise, beginMs.source, () => undefined);
    if (this.#working !== undefined) await withTimeout(this.synced(), beginMs.switch, () => undefined);
  }

  /** The switch keeps its services, since pods use them while no agent runs. Running changes end with the program. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    this.#subscription[Symbol.dispose]();
    clearTimeout(this.#retry);
    await this.#flusher[Symbol.asyncDispose]();
  }

  #follow(services: ReadonlyMap<string, Service>): void {
    this.#wanted = services;
    this.#heard.resolve();
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  async #work(): Promise<void> {
    // Changes of one turn of the event loop count as one state.
    await Promise.resolve();
    while (this.#wanted !== undefined && !this.#isEnded) {
      const services = this.#wanted;
      this.#wanted = undefined;
      clearTimeout(this.#retry);
      const outcome = await this.#reconcile(services);
      if (outcome !== "done") this.#tryAgain(services, retryMs[outcome]);
      this.#first.resolve();
    }
  }

  #tryAgain(services: ReadonlyMap<string, Service>, inMs: number): void {
    if (this.#isEnded) return;
    this.#retry = setTimeout(() => this.#follow(this.#wanted ?? services), inMs);
    this.#retry.unref();
  }

  /** Bundle by bundle, until all is applied, the switch is away, or there is a newer state. */
  async #reconcile(services: ReadonlyMap<string, Service>): Promise<Outcome> {
    let outcome = this.#hasBase ? "done" : await this.#base();
    for (const changes of bundlesOf(this.#applied.changesTo(services))) {
      if (outcome === "away" || this.#wanted !== undefined || this.#isEnded) break;
      outcome = worse(outcome, await this.#apply(changes));
    }
    return outcome;
  }

  async #base(): Promise<Outcome> {
    const flowSet = noServiceFlowSet(this.#options.cidrs);
    const outcome = await this.#set(() => new Map([["services", flowSet]]), "the addresses of services");
    this.#hasBase = outcome === "done";
    return outcome;
  }

  /** A refused bundle is split into halves to find the refused service, so that it does not affect the others. */
  async #apply(changes: readonly ServiceChange[]): Promise<Outcome> {
    const names = changes.length === 1 ? `service "${changes[0]?.key}"` : `${changes.length} services`;
    let step: ReturnType<AppliedServices["step"]> | undefined;
    const make = (): FlowSetChanges => {
      step = this.#applied.step(changes);
      return step.changes;
    };
    const outcome = await this.#set(make, names, changes.length > 1);
    if (outcome === "done") {
      step?.confirm();
      this.#flusher.add(changes.flatMap(removedEndpoints));
    }
    // The program keeps it for the next connection, if it has room and the switch does not refuse it then.
    if (outcome === "away") step?.markDirty();
    if (outcome !== "refused" || changes.length <= 1 || this.#isEnded) return outcome;
    const middle = changes.length >> 1;
    const first = await this.#apply(changes.slice(0, middle));
    return first === "away" ? first : worse(first, await this.#apply(changes.slice(middle)));
  }

  async #set(make: () => FlowSetChanges, what: string, isSearching = false): Promise<Outcome> {
    const { program, logger } = this.#options;
    try {
      await program.set(make());
      return "done";
    } catch (caught) {
      const error = CniError.from(caught, `put ${what} into the switch`);
      if (error.code === CniCode.tryAgainLater) return "away";
      if (!isSearching) logger.error(error.message, { what, details: error.details });
      return "refused";
    }
  }
}

const worse = (one: Outcome, other: Outcome): Outcome =>
  (["away", "refused"] as const).find((outcome) => one === outcome || other === outcome) ?? "done";

function* bundlesOf(changes: Iterable<ServiceChange>): Generator<readonly ServiceChange[]> {
  let bundle: ServiceChange[] = [];
  let size = 0;
  for (const change of changes) {
    bundle.push(change);
    size += sizeOf(change);
    if (size < bundleChanges) continue;
    yield bundle;
    bundle = [];
    size = 0;
  }
  if (bundle.length > 0) yield bundle;
}
