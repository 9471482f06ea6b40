import { firstOf, formatIp, type Ip, lastOf } from "../../../../shared/net/ip.ts";
import type { ServicePort } from "../../services.ts";
import { AppliedRecord } from "../program/applied-record.ts";
import type { FlowSet, FlowSetChanges } from "../program/flow-set.ts";
import { StableIds } from "../program/mod.ts";
import { isSame, listsOf, placesOnlyIn, type ServedPort, type ServiceChange, servedPort } from "./served-port.ts";
import { hairpinFlowSet, numberNames, type ServiceContext, serviceFlowSet } from "./service-flows.ts";

interface AppliedService {
  /** As the switch has it. */
  readonly served: ServedPort;
  /** What was wanted, which usually is the same object the next time. */
  readonly given: ServicePort;
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
  readonly #context: ServiceContext;
  readonly #proxyAll: boolean;
  /** First and last address of each block, for a fast check of every endpoint. */
  readonly #podBlocks: readonly (readonly [Ip, Ip])[];
  readonly #services = new AppliedRecord<AppliedService>();
  /** Of the services that are applied. */
  readonly #local = new AppliedRecord<LocalEndpoint>();
  readonly #numbers = new StableIds();

  /** @param proxyAll `false`: services are met at their cluster IPs alone */
  constructor(context: ServiceContext, proxyAll: boolean) {
    this.#context = context;
    this.#proxyAll = proxyAll;
    this.#podBlocks = context.podSubnets.map((subnet) => [firstOf(subnet), lastOf(subnet)]);
  }

  /** As the switch has them. */
  *all(): Generator<ServedPort> {
    for (const [, { served }] of this.#services.entries()) yield served;
  }

  /**
   * The changes to make. What goes comes first, also services that leave a place which another one gets, because two
   * may swap addresses and cannot have the same one in between.
   */
  *changesTo(wanted: ReadonlyMap<string, ServicePort>): Generator<ServiceChange> {
    for (const [key, { served: before, given }] of [...this.#services.entries()])
      if (!wanted.has(key)) yield { key, given, before, after: undefined };
    const changes = this.#changed(wanted);
    const taken = new Map<string, string>();
    for (const { key, before, after } of changes)
      for (const place of placesOnlyIn(after, before)) taken.set(place, key);
    const leaving = changes.filter(
      ({ before, after }) => before !== undefined && placesOnlyIn(before, after).some((place) => taken.has(place)),
    );
    for (const { key, given, before } of leaving) yield { key, given, before, after: undefined };
    const left = new Set(leaving.map(({ key }) => key));
    for (const change of changes) yield left.has(change.key) ? { ...change, before: undefined } : change;
  }

  #changed(wanted: ReadonlyMap<string, ServicePort>): readonly ServiceChange[] {
    const changes: ServiceChange[] = [];
    for (const [key, given] of wanted) {
      if (this.#services.isApplied(key, (applied) => given === applied.given)) continue;
      const after = servedPort(given, this.#proxyAll);
      if (this.#services.isApplied(key, ({ served }) => isSame(after, served)))
        this.#services.set(key, { served: after, given });
      else changes.push({ key, given, before: this.#services.get(key)?.served, after });
    }
    return changes;
  }

  /** The flow sets of these changes; once the program has answered, `confirm` or `markDirty` must be called. */
  step(changes: readonly ServiceChange[]): Step {
    const flowSets = new Map<string, FlowSet | undefined>();
    const numbers = (name: string): number => this.#numbers.of(name);
    for (const { key, after } of changes) {
      flowSets.set(`service/${key}`, after === undefined ? undefined : serviceFlowSet(after, numbers, this.#context));
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
      if (after !== undefined) this.#services.set(key, { served: after, given });
      else this.#services.delete(key);
    }
    // A service that left its place was removed and added in the same step, and keeps its numbers.
    for (const { key, before } of changes) {
      const served = this.#services.get(key)?.served;
      const kept = new Set(served === undefined ? [] : numberNames(served));
      for (const name of before === undefined ? [] : numberNames(before))
        if (!kept.has(name)) this.#numbers.release(name);
    }
  }

  #markDirty(changes: readonly ServiceChange[], local: ReadonlyMap<string, LocalEndpoint>): void {
    // Those that are new are recorded, so that they go if nobody wants them any more.
    const added = changes.filter(({ key, after }) => after !== undefined && this.#services.get(key) === undefined);
    this.#count(this.#localAfter(added));
    for (const { key, given, after } of added) {
      if (after !== undefined) this.#services.set(key, { served: after, given });
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
    const add = (served: ServedPort | undefined, by: number): void => {
      for (const { ip } of served === undefined ? [] : listsOf(served).flat()) {
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
