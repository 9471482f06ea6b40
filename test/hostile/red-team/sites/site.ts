import type { NetworkNamespace } from "../../../support/network-namespace.ts";
import type { Place, World } from "../world.ts";

/** Where somebody listens. */
export interface Ear {
  readonly place: Place;
  readonly namespace: NetworkNamespace;
  readonly ifname: string;
}

/** A kernel whose routes, addresses and neighbours the attacker must not change. */
export interface Kernel {
  readonly name: string;
  readonly namespace: NetworkNamespace;
}

/** Nodes with pods, one of which is the attacker's, and everybody who may hear of it. */
export interface Site extends AsyncDisposable {
  readonly world: World;
  readonly attacker: { readonly namespace: NetworkNamespace; readonly ifname: string };
  /** Bytes, of the attacker's interface. */
  readonly mtu: number;
  readonly ears: readonly Ear[];
  readonly kernels: readonly Kernel[];
  /** What else has learned from frames, as lines of "who: what" with their MACs and addresses. */
  learned(): Promise<readonly string[]>;
}
