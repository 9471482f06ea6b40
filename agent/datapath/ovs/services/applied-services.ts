import type { Logger } from "../../../../shared/log.ts";
import { firstOf, formatIp, type Ip, lastOf } from "../../../../shared/net/ip.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import { AppliedRecord } from "../program/applied-record.ts";
import type { FlowSet, FlowSetChanges } from "../program/flow-set.ts";
import { StableIds } from "../program/mod.ts";
import { hasSameAddress, isSame, maxEndpoints, normalised, type Service, type ServiceChange } from "./service.ts";
import { hairpinFlowSet, serviceFlowSet } from "./service-flows.ts";

interface AppliedService {
  /** As the switch has it. */
  readonly service: Service;
  /** The source's object, which usually is the same in its next state. */
  readonly given: Service;
}

/** A pod of this node that is an endpoint, with the number of endpoints that it is. */
interface LocalEndpoint {
  readonly ip: Ip;
  readonly count: number;
}

interface Step {
  readonly changes: FlowSetChanges;
  /** The switch has it. */
  confirm(): void;
  /** The outcome is unknown: the changes are dirty until it is known. */
  markDirty(): void;
}

/** Records which services the switch's program has, and computes the changes. */
export class AppliedServices {
  /** First and last address of each block, for a fast check of every endpoint. */
  readonly #podBlocks: readonly (readonly [Ip, Ip])[];
  readonly #logger: Logger;
  readonly #services = new AppliedRecord<AppliedService>();
  /** Of the services that are applied. */
  readonly #local = new AppliedRecord<LocalEndpoint>();
  readonly #groupNumbers = new StableIds();

  constructor(context: Pick<PipelineContext, "podSubnets">, logger: Logger) {
    this.#podBlocks = context.podSubnets.map((subnet) => [firstOf(subnet), lastOf(subnet)]);
    this.#logger = logger;
  }

  /**
   * The changes to make. Removals come first, also of services that get another address, because two services may swap
   * addresses and cannot have the same one in between.
   */
  *changesTo(services: ReadonlyMap<string, Service>): Generator<ServiceChange> {
    for (const [key, { service: before, given }] of [...this.#services.entries()]) {
      const after = services.get(key);
      if (after === undefined || !hasSameAddress(after, before)) yield { key, given, before, after: undefined };
    }
    for (const [key, given] of services) {
      if (this.#services.isApplied(key, (applied) => isSame(given, applied.given))) continue;
      const after = normalised(given);
      if (this.#services.isApplied(key, ({ service }) => isSame(after, service))) continue;
      if (after.endpoints.length < given.endpoints.length) this.#logLeftOut(given, after);
      const applied = this.#services.get(key)?.service;
      const before = applied !== undefined && hasSameAddress(after, applied) ? applied : undefined;
      yield { key, given, before, after };
    }
  }

  #logLeftOut({ key, endpoints }: Service, after: Service): void {
    const wanted = `${maxEndpoints} at the most, each once and of the service's family`;
    this.#logger.warn(`Cannot give service "${key}" all endpoints: it has ${endpoints.length}, wanted ${wanted}`, {
      taken: after.endpoints.length,
    });
  }

  /** The flow sets of these changes; once the program has answered, `confirm` or `markDirty` must be called. */
  step(changes: readonly ServiceChange[]): Step {
    const flowSets = new Map<string, FlowSet | undefined>();
    for (const { key, after } of changes) {
      flowSets.set(
        `service/${key}`,
        after === undefined ? undefined : serviceFlowSet(after, this.#groupNumbers.of(key)),
      );
    }
    const local = this.#localAfter(changes);
    for (const [name, { ip, count }] of local) {
      if (this.#local.isApplied(name, (applied) => applied.count > 0 === count > 0)) continue;
      flowSets.set(`service-hairpin/${name}`, count > 0 ? hairpinFlowSet(ip) : undefined);
    }
    return {
      changes: flowSets,
      confirm: () => this.#confirm(changes, local),
      markDirty: () => this.#markDirty(changes, local),
    };
  }

  #confirm(changes: readonly ServiceChange[], local: ReadonlyMap<string, LocalEndpoint>): void {
    this.#count(local);
    for (const { key, given, after } of changes) {
      if (after !== undefined) this.#services.set(key, { service: after, given });
      else this.#services.delete(key);
    }
    // A service that got another address was removed and added in the same step, and keeps its number.
    for (const { key } of changes) if (this.#services.get(key) === undefined) this.#groupNumbers.release(key);
  }

  #markDirty(changes: readonly ServiceChange[], local: ReadonlyMap<string, LocalEndpoint>): void {
    // Those that are new are recorded, so that they go if the source has them no more.
    const added = changes.filter(({ key, after }) => after !== undefined && this.#services.get(key) === undefined);
    this.#count(this.#localAfter(added));
    for (const { key, given, after } of added) {
      if (after !== undefined) this.#services.set(key, { service: after, given });
    }
    this.#services.markDirty(changes.map(({ key }) => key));
    for (const [name, { ip }] of local)
      if (this.#local.get(name) === undefined) this.#local.set(name, { ip, count: 0 });
    this.#local.markDirty(local.keys());
  }

  #count(local: ReadonlyMap<string, LocalEndpoint>): void {
    for (const [name, endpoint] of local) {
      if (endpoint.count > 0) this.#local.set(name, endpoint);
      else this.#local.delete(name);
    }
  }

  /** Of those that the changes concern, and of dirty ones. */
  #localAfter(changes: readonly ServiceChange[]): ReadonlyMap<string, LocalEndpoint> {
    const counts = new Map<string, LocalEndpoint>(this.#local.dirty());
    const add = (service: Service | undefined, by: number): void => {
      for (const { ip } of service?.endpoints ?? []) {
        if (!this.#isLocal(ip)) continue;
        const name = formatIp(ip);
        const { count } = counts.get(name) ?? this.#local.get(name) ?? { count: 0 };
        counts.set(name, { ip, count: count + by });
      }
    };
    for (const { before, after } of changes) {
      add(before, -1);
      add(after, 1);
    }
    return counts;
  }

  /** If another plugin allocates addresses, any may belong to a pod of this node. */
  #isLocal({ family, value }: Ip): boolean {
    const blocks = this.#podBlocks;
    return (
      blocks.length === 0 ||
      blocks.some(([first, last]) => family === first.family && value >= first.value && value <= last.value)
    );
  }
}
