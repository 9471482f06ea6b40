import type { ServicePort } from "../datapath/services.ts";
import type { HealthCheck, ServiceProblem } from "./decide.ts";
import type { Service } from "./service-object.ts";

/** A Service of Kubernetes, as an Event names it. */
export type ServiceReference = Pick<Service, "namespace" | "name" | "uid">;

/** How many were heard so far. */
export interface ServiceChanges {
  readonly services: number;
  readonly endpoints: number;
}

/** Where the services of this node come from. Disposing of it ends it. */
export interface ServiceSource extends AsyncDisposable {
  /**
   * By key, a map that is never changed; a service port that is as before is the same object. `undefined` until all of
   * them are known.
   */
  readonly current: ReadonlyMap<string, ServicePort> | undefined;
  /** Calls `changed` when `current` may be another, and soon where it is there already. */
  subscribe(changed: () => void): Disposable;
  /** Why `current` is not, or may not be, what there is to be now. */
  readonly fault: string | undefined;
  /** By `namespace/name`, a map that is never changed: what load balancers ask at ports of the node. Absent: nothing. */
  readonly healthChecks?: ReadonlyMap<string, HealthCheck>;
  /** Absent: it is not known what has changed. */
  readonly changes?: ServiceChanges;
  /**
   * When the pods and services changed for which endpoints are others since the last question, as far as that is known.
   * Milliseconds since 1970, by the clock of Kubernetes.
   */
  takeTriggers?(): readonly number[];
  /** By `namespace/name`, a map that is never changed: services that are not as they say. Absent: none is taken then. */
  readonly problems?: ReadonlyMap<string, readonly ServiceProblem[]>;
  /** Whom Kubernetes is told about, by `namespace/name`. Absent: the services are none of Kubernetes'. */
  referenceOf?(service: string): ServiceReference | undefined;
}
