import type { Attachment, Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatIp, type Ip } from "../../shared/net/ip.ts";
import type { Store } from "../store/store.ts";

/**
 * A database that was rebuilt without everything that stood in the damaged one: an address that seems free may be in
 * use. Until a network is known to be complete again, none is given to anybody who holds none.
 */
const incompleteMark = "incomplete";
const completeMark = (network: string): string => `complete ${network}`;

/** @param aside name of the damaged file */
export function declareIncomplete(store: Store, aside: string): void {
  store.setMark(incompleteMark, aside);
}

/** The damaged file that the network's leases may be missing from; `undefined` where all are known. */
export function missingSince(store: Pick<Store, "mark">, network: string): string | undefined {
  const aside = store.mark(incompleteMark);
  return aside === undefined || store.mark(completeMark(network)) === aside ? undefined : aside;
}

/** Every address of the network that is in use has its lease now. */
export function declareComplete(store: Store, network: string): void {
  const aside = missingSince(store, network);
  if (aside !== undefined) store.setMark(completeMark(network), aside);
}

/** The same where the runtime has told everything that runs, and each of it has a lease. */
export function completeByList(store: Store, network: string, running: readonly Attachment[]): void {
  if (missingSince(store, network) !== undefined && haveLeases(store, network, running))
    declareComplete(store, network);
}

export function haveLeases(store: Store, network: string, running: readonly Attachment[]): boolean {
  // Without an interface's name a lease is one of any of the sandbox's.
  const isHeld = (owner: Owner): boolean =>
    store.select({ by: "owner", owner }).some(({ state }) => state === "allocated");
  return running.every(({ containerId: sandboxId, ifname }) =>
    [ifname, ""].some((name) => isHeld({ network, sandboxId, ifname: name })),
  );
}

const unreadable = "unreadable-";

/** Holds an address that is in use by somebody whose name was lost: no DEL names it. */
export const namelessOwner = (network: string, ip: Ip): Owner => ({
  network,
  sandboxId: `${unreadable}${formatIp(ip).replaceAll(":", "_")}`,
  ifname: "",
});

/** One of those, also where it came along from host-local. While somebody who runs has no lease, it may be that one's. */
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
