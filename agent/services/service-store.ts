import type { ServicePort } from "../datapath/services.ts";
import { type Decided, decide, type HealthCheck, type ThisNode } from "./decide.ts";
import type { EndpointSlice } from "./endpoint-slice.ts";
import type { Service } from "./service-object.ts";

const nothing: Decided = { ports: [], problems: [] };

/**
 * Services and their endpoints as they are told, and what follows for this node. What a change costs is the size of its
 * service: others are not looked at, and what is as before stays the same object.
 */
export class ServiceStore {
  /** By `namespace/name`, as those below. */
  readonly #services = new Map<string, Service>();
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  readonly #decided = new Map<string, Decided>();
  readonly #changed = new Set<string>();
  #node: ThisNode = {};
  #wanted: ReadonlyMap<string, ServicePort> = new Map();
  #healthChecks: ReadonlyMap<string, HealthCheck> = new Map();

  putService(service: Service): void {
    const key = nameOf(service);
    this.#services.set(key, service);
    this.#changed.add(key);
  }

  deleteService(service: Service): void {
    this.#services.delete(nameOf(service));
    this.#changed.add(nameOf(service));
  }

  putSlice(slice: EndpointSlice): void {
    const key = serviceOf(slice);
    const slices = this.#slices.get(key) ?? new Map<string, EndpointSlice>();
    this.#slices.set(key, slices.set(slice.name, slice));
    this.#changed.add(key);
  }

  deleteSlice(slice: EndpointSlice): void {
    const key = serviceOf(slice);
    const slices = this.#slices.get(key);
    slices?.delete(slice.name);
    if (slices?.size === 0) this.#slices.delete(key);
    this.#changed.add(key);
  }

  setNode(node: ThisNode): void {
    if (node.zone === this.#node.zone) return;
    this.#node = node;
    for (const key of this.#services.keys()) this.#changed.add(key);
  }

  /** By key, what there is to be now; the same map while nothing of it changes. */
  get wanted(): ReadonlyMap<string, ServicePort> {
    this.#decide();
    return this.#wanted;
  }

  /** By `namespace/name`: services whose health a load balancer asks for at a port of the node. */
  get healthChecks(): ReadonlyMap<string, HealthCheck> {
    this.#decide();
    return this.#healthChecks;
  }

  /** What of the services is not understood, in sentences. */
  get problems(): readonly string[] {
    this.#decide();
    return Array.from(this.#decided, ([key, { problems }]) =>
      problems.map((problem) => `Service "${key}": ${problem}`),
    ).flat();
  }

  #decide(): void {
    if (this.#changed.size === 0) return;
    const changes: (readonly [before: Decided, after: Decided, key: string])[] = [];
    for (const key of this.#changed) {
      const before = this.#decided.get(key) ?? nothing;
      const service = this.#services.get(key);
      const slices = [...(this.#slices.get(key)?.values() ?? [])];
      const after = service === undefined ? nothing : keeping(before, decide(service, slices, this.#node));
      if (after === nothing) this.#decided.delete(key);
      else this.#decided.set(key, after);
      if (after !== before) changes.push([before, after, key]);
    }
    this.#changed.clear();
    this.#publish(changes);
  }

  /** Makes new maps where something of them is another: whoever has an old one goes on with it. */
  #publish(changes: readonly (readonly [Decided, Decided, string])[]): void {
    if (changes.some(([before, after]) => before.ports !== after.ports)) {
      const wanted = new Map(this.#wanted);
      for (const [before] of changes) for (const { key } of before.ports) wanted.delete(key);
      for (const [, after] of changes) for (const port of after.ports) wanted.set(port.key, port);
      this.#wanted = wanted;
    }
    if (changes.every(([before, after]) => before.healthCheck === after.healthCheck)) return;
    const checks = new Map(this.#healthChecks);
    for (const [, { healthCheck }, key] of changes)
      if (healthCheck === undefined) checks.delete(key);
      else checks.set(key, healthCheck);
    this.#healthChecks = checks;
  }
}

/** The same, in which what is as before is the same object; `before` itself where all of it is. */
function keeping(before: Decided, after: Decided): Decided {
  const old = new Map(before.ports.map((port) => [port.key, port]));
  const same = <T>(one: T | undefined, other: T): T => (one !== undefined && Bun.deepEquals(one, other) ? one : other);
  const ports = after.ports.map((port) => same(old.get(port.key), port));
  const isAsBefore = ports.length === before.ports.length && ports.every((port, i) => port === before.ports[i]);
  const healthCheck = same(before.healthCheck, after.healthCheck);
  const problems = same(before.problems, after.problems);
  if (isAsBefore && healthCheck === before.healthCheck && problems === before.problems) return before;
  return {
    ports: isAsBefore ? before.ports : ports,
    problems,
    ...(healthCheck === undefined ? {} : { healthCheck }),
  };
}

const nameOf = ({ namespace, name }: Service): string => `${namespace}/${name}`;
const serviceOf = ({ namespace, service }: EndpointSlice): string => `${namespace}/${service}`;
