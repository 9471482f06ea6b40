import { contains, formatIp, type Ip } from "../../../../shared/ip.ts";
import type { Logger } from "../../../../shared/log.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import { StableIds } from "../program/mod.ts";
import type { Part } from "../switch-program.ts";
import { mostEndpoints, type Service } from "./service.ts";
import { normalised, placeOf, type ServiceChange, signatureOf } from "./service-changes.ts";
import { hairpinPart, servicePart } from "./service-flows.ts";

/** A service that the switch has. */
interface Kept {
  readonly service: Service;
  readonly signature: string;
}

/** What the switch has of services, and what a change of them means for it. */
export class ServiceParts {
  readonly #context: Pick<PipelineContext, "podSubnets">;
  readonly #logger: Logger;
  readonly #kept = new Map<string, Kept>();
  readonly #numbers = new StableIds();
  /** Own pods that are endpoints, and how many of the kept services' endpoints each one is. */
  readonly #local = new Map<string, number>();

  constructor(context: Pick<PipelineContext, "podSubnets">, logger: Logger) {
    this.#context = context;
    this.#logger = logger;
  }

  /**
   * What has to change. What goes comes first, services that get another address among it: two of them may change
   * places, and no two can have the same one in between.
   */
  *changesTo(services: ReadonlyMap<string, Service>): Generator<ServiceChange> {
    for (const [key, { service }] of [...this.#kept]) {
      const after = services.get(key);
      if (after === undefined || placeOf(after) !== placeOf(service)) yield { key, before: service, after: undefined };
    }
    for (const [key, given] of services) {
      const after = normalised(given);
      const kept = this.#kept.get(key);
      if (kept !== undefined && kept.signature === signatureOf(after)) continue;
      if (after.endpoints.length < given.endpoints.length) this.#tellOfOthers(given, after);
      const before = kept === undefined || placeOf(kept.service) !== placeOf(after) ? undefined : kept.service;
      yield { key, before, after };
    }
  }

  #tellOfOthers({ key, endpoints }: Service, after: Service): void {
    const wanted = `${mostEndpoints} at the most, each once and of the service's family`;
    this.#logger.warn(`Cannot give service "${key}" all endpoints: it has ${endpoints.length}, wanted ${wanted}`, {
      taken: after.endpoints.length,
    });
  }

  /** The parts of the switch's program that these changes set. */
  partsOf(changes: readonly ServiceChange[]): Map<string, Part | undefined> {
    const parts = new Map<string, Part | undefined>();
    for (const { key, after } of changes) {
      parts.set(`service/${key}`, after === undefined ? undefined : servicePart(after, this.#numbers.of(key)));
    }
    for (const [name, { ip, count }] of this.#localAfter(changes)) {
      const before = this.#local.get(name) ?? 0;
      if (before === 0 && count > 0) parts.set(`service-hairpin/${name}`, hairpinPart(ip));
      else if (before > 0 && count === 0) parts.set(`service-hairpin/${name}`, undefined);
    }
    return parts;
  }

  /** The switch has these changes. */
  keep(changes: readonly ServiceChange[]): void {
    for (const [name, { count }] of this.#localAfter(changes)) {
      if (count > 0) this.#local.set(name, count);
      else this.#local.delete(name);
    }
    for (const { key, after } of changes) {
      if (after !== undefined) this.#kept.set(key, { service: after, signature: signatureOf(after) });
      else this.#kept.delete(key);
    }
    for (const { key } of changes) if (!this.#kept.has(key)) this.#numbers.release(key);
  }

  #localAfter(changes: readonly ServiceChange[]): Map<string, { readonly ip: Ip; count: number }> {
    const counts = new Map<string, { readonly ip: Ip; count: number }>();
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
  #isLocal(ip: Ip): boolean {
    const { podSubnets } = this.#context;
    return podSubnets.length === 0 || podSubnets.some((subnet) => contains(subnet, ip));
  }
}
