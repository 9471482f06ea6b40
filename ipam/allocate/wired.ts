import type { Owner } from "../../shared/cni/types.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { interfaceMark } from "./marks.ts";

/**
 * Which leases the agent made an interface for, or was about to. A lease that a program or a person took without one
 * looks the same where no interface stands, and must not be taken back for want of it.
 *
 * The mark's value is the generation of the owner's latest lease then: a Pipette that knows no such marks may end a
 * lease and leave its mark, and a later lease of the owner has a higher one.
 */
export function noteInterface(store: Store, owner: Owner, leases: readonly Lease[]): void {
  const value = String(Math.max(...leases.map(({ generation }) => generation)));
  if (leases.length > 0 && store.mark(interfaceMark(owner)) !== value) store.setMark(interfaceMark(owner), value);
}

export const hasInterface = (store: Store, { owner, generation }: Lease): boolean =>
  generation <= Number(store.mark(interfaceMark(owner)) ?? "0");

/** To be called when a lease is left: who comes again is wired again. */
export function forgetInterface(store: Store, { owner }: Lease): void {
  store.setMark(interfaceMark(owner), undefined);
}
