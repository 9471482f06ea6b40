import { sameOwner } from "../../shared/cni/owner-key.ts";
import type { Attachment, Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, formatIp, type Ip } from "../../shared/net/ip.ts";
import { generationMark } from "../allocate/marks.ts";
import { subnetOf } from "../allocate/owner-leases.ts";
import type { RangeSet } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";

/**
 * Marks a database that was rebuilt without all content of the damaged one, so that an address that seems free may be
 * in use. Until a network is known to be complete again, no new owner gets an address of it.
 */
const incompleteMark = "incomplete";
const completeMark = (network: string): string => `complete ${network}`;

/** @param aside name of the damaged file */
export function declareIncomplete(store: Store, aside: string): void {
  store.setMark(incompleteMark, aside);
}

/** The name of the damaged file whose leases of this network may be lost; `undefined` if all are known. */
export function missingSince(store: Pick<Store, "mark">, network: string): string | undefined {
  const aside = store.mark(incompleteMark);
  return aside === undefined || store.mark(completeMark(network)) === aside ? undefined : aside;
}

/** Every address of the network that is in use has its lease now. */
export function declareComplete(store: Store, network: string): void {
  const aside = missingSince(store, network);
  if (aside !== undefined) store.setMark(completeMark(network), aside);
}

/** The same after the runtime has listed everything that runs, if each attachment has a lease. */
export function completeByList(store: Store, network: string, running: readonly Attachment[]): void {
  if (missingSince(store, network) !== undefined && haveLeases(store, network, running))
    declareComplete(store, network);
}

export function haveLeases(store: Store, network: string, running: readonly Attachment[]): boolean {
  // A lease without an interface name counts for any interface of the sandbox.
  const isHeld = (owner: Owner): boolean =>
    store.select({ by: "owner", owner }).some(({ state }) => state === "allocated");
  return running.every(({ containerId: sandboxId, ifname }) =>
    [ifname, ""].some((name) => isHeld({ network, sandboxId, ifname: name })),
  );
}

const unreadable = "unreadable-";

/** The owner of an address in use whose real owner was lost; no DEL names it. */
export const namelessOwner = (network: string, ip: Ip): Owner => ({
  network,
  sandboxId: `${unreadable}${formatIp(ip).replaceAll(":", "_")}`,
  ifname: "",
});

/**
 * Whether it is such an owner, or one from an import of host-local. Its address may belong to a running pod that has no
 * lease.
 */
export const isNameless = ({ sandboxId, ifname }: Owner): boolean => ifname === "" && sandboxId.startsWith(unreadable);

/** @throws {CniError} code 101 where an address that seems free may be in use */
export function requireComplete(store: Store, network: string): void {
  const aside = missingSince(store, network);
  if (aside === undefined) return;
  throw new CniError(
    CniCode.ipamFailure,
    `Cannot allocate an address: some leases of network "${network}" were lost when the database was damaged, wanted every address in use known`,
    {
      details: `Pods that have a lease keep it; the damaged database is "${aside}". The agent makes its own networks complete at its start. Elsewhere a GC with the list of what runs does, once everything on the list has a lease: restart the pods that have none, or empty the node, then "pipette ipam gc"`,
    },
  );
}

/** An owner that is known to use addresses, also if the store has no leases for it. */
export interface AddressesInUse {
  readonly owner: Owner;
  readonly addresses: readonly Cidr[];
}

export interface RestoreContext {
  readonly rangeSets: readonly RangeSet[];
  readonly bootId: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** Whether another owner uses its addresses too. */
  isInUse(owner: Owner): boolean;
}

export interface Restored {
  /** Leases that were restored to the owner. */
  readonly leases: readonly Lease[];
  /** Leases of other owners that use the same address: they stay. */
  readonly clashes: readonly Lease[];
}

/**
 * Restores lost leases of addresses that the owner uses. If another owner got a lease for one of them meanwhile and
 * does not use it, that lease is ended.
 */
export function restoreLeases(store: Store, { owner, addresses }: AddressesInUse, context: RestoreContext): Restored {
  const leases: Lease[] = [];
  const clashes: Lease[] = [];
  for (const { ip, prefix } of addresses) {
    const [now] = store.select({ by: "address", network: owner.network, ip });
    const isOwn = now !== undefined && sameOwner(now.owner, owner);
    if (isOwn && now.state !== "cooling") continue;
    if (now !== undefined && !isOwn && now.state !== "cooling" && context.isInUse(now.owner)) {
      clashes.push(now);
      continue;
    }
    const generation = Number(store.mark(generationMark) ?? "0") + 1;
    const lease: Lease = {
      owner,
      rangeSet: 0,
      address: { ip, prefix },
      ...subnetOf(context.rangeSets, ip),
      state: "allocated",
      bootId: context.bootId,
      generation,
      ...(isOwn && now.pod !== undefined ? { pod: now.pod } : {}),
      allocatedAtMs: context.now(),
    };
    store.put(lease);
    store.setMark(generationMark, String(generation));
    leases.push(lease);
  }
  return { leases, clashes };
}
