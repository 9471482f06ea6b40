import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Cidr } from "../../../../shared/ip.ts";
import type { Logger } from "../../../../shared/log.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import type { Part, SwitchProgram } from "../switch-program.ts";
import { GoneConnections } from "./gone-connections.ts";
import type { Service, ServiceSource } from "./service.ts";
import { goneEndpoints, type ServiceChange, sizeOf } from "./service-changes.ts";
import { noServicePart } from "./service-flows.ts";
import { ServiceParts } from "./service-parts.ts";

export interface ServiceKeeperOptions {
  readonly source: ServiceSource;
  readonly program: SwitchProgram;
  readonly context: Pick<PipelineContext, "podSubnets">;
  /** Where services have their addresses. */
  readonly cidrs: readonly Cidr[];
  /** Where the bridge listens, as `parseAddress` of `agent/openflow` takes it. */
  readonly management: string;
  readonly logger: Logger;
}

/** Flows and groups of one bundle: some ten milliseconds of the switch's time, in which it does nothing else. */
const bundleChanges = 4_000;
/** Between two attempts at what the switch has refused. */
const retryMs = 10_000;

/**
 * Keeps the switch's services as the source has them. Only the source's latest state counts: what changes while the
 * switch is busy comes together in the next bundle. The switch's program puts all of it in again after a restart.
 */
export class ServiceKeeper implements AsyncDisposable {
  readonly #options: ServiceKeeperOptions;
  readonly #parts: ServiceParts;
  readonly #subscription: Disposable;
  readonly #first = Promise.withResolvers<void>();
  readonly #gone: GoneConnections;
  #wanted: ReadonlyMap<string, Service> | undefined;
  #working: Promise<void> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #hasBase = false;
  #isEnded = false;

  constructor(options: ServiceKeeperOptions) {
    this.#options = options;
    this.#parts = new ServiceParts(options.context, options.logger);
    this.#gone = new GoneConnections(options);
    this.#subscription = options.source.subscribe((services) => this.#want(services));
  }

  /** Resolves once the source's first state, and all that came until now, is in the switch as far as it took that. */
  async settled(): Promise<void> {
    await this.#first.promise;
    while (this.#working !== undefined) await this.#working;
  }

  /** The switch keeps what it has: pods go on while no agent runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    this.#subscription[Symbol.dispose]();
    clearTimeout(this.#retry);
    await this.#working;
    await this.#gone[Symbol.asyncDispose]();
  }

  #want(services: ReadonlyMap<string, Service>): void {
    this.#wanted = services;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  async #work(): Promise<void> {
    // What comes in one turn, such as a source's first state and the next, is one state.
    await Promise.resolve();
    while (this.#wanted !== undefined && !this.#isEnded) {
      const services = this.#wanted;
      this.#wanted = undefined;
      clearTimeout(this.#retry);
      if (!(await this.#bring(services))) this.#tryAgain(services);
      this.#first.resolve();
    }
  }

  #tryAgain(services: ReadonlyMap<string, Service>): void {
    this.#retry = setTimeout(() => this.#want(this.#wanted ?? services), retryMs);
    this.#retry.unref();
  }

  /** Bundle by bundle, until all is in or there is something newer. Answers whether nothing is left to try again. */
  async #bring(services: ReadonlyMap<string, Service>): Promise<boolean> {
    let isDone = this.#hasBase || (await this.#base());
    for (const changes of bundlesOf(this.#parts.changesTo(services))) {
      if (this.#wanted !== undefined || this.#isEnded) return true;
      if (!(await this.#apply(changes))) isDone = false;
    }
    return isDone;
  }

  async #base(): Promise<boolean> {
    const part = noServicePart(this.#options.cidrs);
    this.#hasBase = await this.#set(new Map([["services", part]]), "the addresses of services");
    return this.#hasBase;
  }

  /** What the switch refuses is looked for by halves, so that one service does not cost the others theirs. */
  async #apply(changes: readonly ServiceChange[]): Promise<boolean> {
    const names = changes.length === 1 ? `service "${changes[0]?.key}"` : `${changes.length} services`;
    const step = this.#parts.step(changes);
    if (await this.#set(step.parts, names, changes.length > 1)) {
      step.keep();
      this.#gone.add(changes.flatMap(goneEndpoints));
      return true;
    }
    if (changes.length <= 1 || this.#isEnded) return false;
    const middle = changes.length >> 1;
    const isFirstDone = await this.#apply(changes.slice(0, middle));
    return (await this.#apply(changes.slice(middle))) && isFirstDone;
  }

  /** `true` where the switch has them, or gets them with its next connection. */
  async #set(parts: ReadonlyMap<string, Part | undefined>, what: string, isSearching = false): Promise<boolean> {
    const { program, logger } = this.#options;
    try {
      await program.set(parts);
      return true;
    } catch (caught) {
      const error = CniError.from(caught, `put ${what} into the switch`);
      if (error.code === CniCode.tryAgainLater) return true;
      if (!isSearching) logger.error(error.message, { what, details: error.details });
      return false;
    }
  }
}

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
