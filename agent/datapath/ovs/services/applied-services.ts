import type { Logger } from "../../../../shared/log.ts";
import { firstOf, formatIp, type Ip, lastOf } from "../../../../shared/net/ip.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import type { FlowSet } from "../program/flow-set.ts";
import { StableIds } from "../program/mod.ts";
import { hasSameAddress, isSame, maxEndpoints, normalised, type Service, type ServiceChange } from "./service.ts";
import { hairpinFlowSet, serviceFlowSet } from "./service-flows.ts";

interface Kept {
  /** As the switch has it. */
  readonly service: Service;
  /** As the source gave it: mostly the next state has it again. */
  readonly given: Service;
}

/** Own pods that are endpoints, and how many of the services' endpoints each one is. */
type LocalCounts = Map<string, { readonly ip: Ip; count: number }>;

interface Step {
  readonly parts: ReadonlyMap<string, FlowSet | undefined>;
  /** The switch has it. */
  keep(): void;
  /** It may get it, or not: all of it is a change again until it is known. */
  doubt(): void;
}

/** What the switch has of services, and what a change of them means for it. */
export class AppliedServices {
  /** First and last address: it is asked of each endpoint. */
  readonly #podBlocks: readonly (readonly [Ip, Ip])[];
  readonly #logger: Logger;
  readonly #kept = new Map<string, Kept>();
  readonly #numbers = new StableIds();
  /** Of the kept services. */
  readonly #local = new Map<string, number>();
  /** Services, and own pods that are endpoints, of which the switch may have something else than what is kept. */
  readonly #doubtful = new Set<string>();
  readonly #doubtfulLocal = new Map<string, Ip>();

  constructor(context: Pick<PipelineContext, "podSubnets">, logger: Logger) {
    this.#podBlocks = context.podSubnets.map((subnet) => [firstOf(subnet), lastOf(subnet)]);
    this.#logger = logger;
  }

  /**
   * What has to change. What goes comes first, services that get another address among it: two of them may change
   * places, and no two can have the same one in between.
   */
  *changesTo(services: ReadonlyMap<string, Service>): Generator<ServiceChange> {
    for (const [key, { service: before, given }] of [...this.#kept]) {
      const after = services.get(key);
      if (after === undefined || !hasSameAddress(after, before)) yield { key, given, before, after: undefined };
    }
    for (const [key, given] of services) {
      const kept = this.#kept.get(key);
      const isSure = kept !== undefined && !this.#doubtful.has(key);
      if (isSure && isSame(given, kept.given)) continue;
      const after = normalised(given);
      if (isSure && isSame(after, kept.service)) continue;
      if (after.endpoints.length < given.endpoints.length) this.#tellOfOthers(given, after);
      const before = kept !== undefined && hasSameAddress(after, kept.service) ? kept.service : undefined;
      yield { key, given, before, after };
    }
  }

  #tellOfOthers({ key, endpoints }: Service, after: Service): void {
    const wanted = `${maxEndpoints} at the most, each once and of the service's family`;
    this.#logger.warn(`Cannot give service "${key}" all endpoints: it has ${endpoints.length}, wanted ${wanted}`, {
      taken: after.endpoints.length,
    });
  }

  /** What these changes set in the switch's program; once that has answered, `keep` or `doubt` is to be called. */
  step(changes: readonly ServiceChange[]): Step {
    const parts = new Map<string, FlowSet | undefined>();
    for (const { key, after } of changes) {
      parts.set(`service/${key}`, after === undefined ? undefined : serviceFlowSet(after, this.#numbers.of(key)));
    }
    const local = this.#localAfter(changes);
    for (const [name, { ip, count }] of local) {
      const before = this.#local.get(name) ?? 0;
      const isSure = !this.#doubtfulLocal.has(name);
      if (isSure && before > 0 === count > 0) continue;
      parts.set(`service-hairpin/${name}`, count > 0 ? hairpinFlowSet(ip) : undefined);
    }
    return { parts, keep: () => this.#keep(changes, local), doubt: () => this.#doubt(changes, local) };
  }

  #doubt(changes: readonly ServiceChange[], local: LocalCounts): void {
    // Those that are new are kept, so that they go if the source has them no more.
    const added = changes.filter(({ key, after }) => after !== undefined && !this.#kept.has(key));
    this.#count(this.#localAfter(added));
    for (const { key, given, after } of added) if (after !== undefined) this.#kept.set(key, { service: after, given });
    for (const { key } of changes) this.#doubtful.add(key);
    for (const [name, { ip }] of local) this.#doubtfulLocal.set(name, ip);
  }

  #count(local: LocalCounts): void {
    for (const [name, { count }] of local) {
      if (count > 0) this.#local.set(name, count);
      else this.#local.delete(name);
    }
  }

  #keep(changes: readonly ServiceChange[], local: LocalCounts): void {
    this.#count(local);
    this.#doubtfulLocal.clear();
    for (const { key } of changes) this.#doubtful.delete(key);
    for (const { key, given, after } of changes) {
      if (after !== undefined) this.#kept.set(key, { service: after, given });
      else this.#kept.delete(key);
    }
    for (const { key } of changes) if (!this.#kept.has(key)) this.#numbers.release(key);
  }

  #localAfter(changes: readonly ServiceChange[]): LocalCounts {
    const counts: LocalCounts = new Map(
      [...this.#doubtfulLocal].map(([name, ip]) => [name, { ip, count: this.#local.get(name) ?? 0 }]),
    );
    const add = (service: Service | undefined, by: number): void => {
      for (const { ip } of service?.endpoints ?? []) {
        if (!this.#isLocal(ip)) continue;
        const name = formatIp(ip);
        const found = counts.get(name) ?? { ip, count: this.#local.get(name) ?? 0 };
        found.count += by;
        counts.set(name, found);
      }
    };
    for (const { before, after } of changes) {
      add(before, -1);
      add(after, 1);
    }
    return counts;
  }

  /** Where another plugin gives the addresses, any may be a pod's of this node. */
  #isLocal({ family, value }: Ip): boolean {
    const blocks = this.#podBlocks;
    return (
      blocks.length === 0 ||
      blocks.some(([first, last]) => family === first.family && value >= first.value && value <= last.value)
    );
  }
}
