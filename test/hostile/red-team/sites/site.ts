import type { NetworkNamespace } from "../../../support/network-namespace.ts";
import type { Belief } from "../beliefs.ts";
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
  /** What links and switches have learned from frames. */
  learned(): Promise<readonly Belief[]>;
}
