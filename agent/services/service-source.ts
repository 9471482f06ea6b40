import type { ServicePort } from "../datapath/services.ts";

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
}
