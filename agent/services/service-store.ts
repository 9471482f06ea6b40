import type { ServicePort } from "../datapath/services.ts";
import { Claims } from "./claims.ts";
import { type Decided, decide, type HealthCheck, type ServiceProblem, type ThisNode } from "./decide.ts";
import type { EndpointSlice } from "./endpoint-slice.ts";
import type { Service } from "./service-object.ts";
import type { ServiceReference } from "./service-source.ts";

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
  /** The same of those of which others have something. */
  readonly #reduced = new Map<string, Decided>();
  readonly #claims = new Claims();
  readonly #changed = new Set<string>();
  #node: ThisNode = {};
  #wanted: ReadonlyMap<string, ServicePort> = new Map();
  #healthChecks: ReadonlyMap<string, HealthCheck> = new Map();
  #problems: ReadonlyMap<string, readonly ServiceProblem[]> = new Map();

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

  /** By `namespace/name`: services that are not as they say. */
  get problems(): ReadonlyMap<string, readonly ServiceProblem[]> {
    this.#decide();
    return this.#problems;
  }

  referenceOf(key: string): ServiceReference | undefined {
    return this.#services.get(key);
  }

  #decide(): void {
    if (this.#changed.size === 0) return;
    const before = new Map<string, Decided>();
    for (const key of this.#changed) {
      before.set(key, this.#leftOf(key));
      const service = this.#services.get(key);
      const slices = [...(this.#slices.get(key)?.values() ?? [])];
      const old = this.#decided.get(key) ?? nothing;
      const now = service === undefined ? nothing : keeping(old, decide(service, slices, this.#node));
      if (now === nothing) this.#decided.delete(key);
      else this.#decided.set(key, now);
      for (const other of this.#claims.set(key, service?.created ?? "", now))
        if (!before.has(other)) before.set(other, this.#leftOf(other));
    }
    this.#changed.clear();
    this.#publish(Array.from(before, ([key, old]) => [old, this.#settle(key, old), key]));
  }

  /** What was decided of a service, less what others have. */
  #leftOf(key: string): Decided {
    return this.#reduced.get(key) ?? this.#decided.get(key) ?? nothing;
  }

  #settle(key: string, old: Decided): Decided {
    const decided = this.#decided.get(key) ?? nothing;
    const left = this.#claims.leftOf(key, decided);
    if (left === decided) this.#reduced.delete(key);
    else this.#reduced.set(key, keeping(old, left));
    return this.#leftOf(key);
  }

  /** Makes new maps where something of them is another: whoever has an old one goes on with it. */
  #publish(changes: readonly (readonly [before: Decided, after: Decided, key: string])[]): void {
    if (changes.some(([before, after]) => before.ports !== after.ports)) {
      const wanted = new Map(this.#wanted);
      for (const [before] of changes) for (const { key } of before.ports) wanted.delete(key);
      for (const [, after] of changes) for (const port of after.ports) wanted.set(port.key, port);
      this.#wanted = wanted;
    }
    this.#healthChecks = withChanges(this.#healthChecks, changes, ({ healthCheck }) => healthCheck);
    this.#problems = withChanges(this.#problems, changes, ({ problems }) =>
      problems.length === 0 ? undefined : problems,
    );
  }
}

/** The same map where nothing of it is another. */
function withChanges<T>(
  map: ReadonlyMap<string, T>,
  changes: readonly (readonly [before: Decided, after: Decided, key: string])[],
  of: (decided: Decided) => T | undefined,
): ReadonlyMap<string, T> {
  if (changes.every(([, after, key]) => map.get(key) === of(after))) return map;
  const changed = new Map(map);
  for (const [, after, key] of changes) {
    const value = of(after);
    if (value === undefined) changed.delete(key);
    else changed.set(key, value);
  }
  return changed;
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
