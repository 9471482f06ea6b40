import { ipOf } from "../shared/net/ip.ts";
import { cooldownOf, cooledBy, cooledTest } from "./allocate/cooldown.ts";
import type { Lease } from "./lease.ts";
import type { Store } from "./store/store.ts";

/**
 * Leases that are read at once: their rows take a few hundred kB, and other calls wait a millisecond or two at most.
 */
const pageLeases = 500;

/** The first and the last address of both families, in the store's order. */
const firstAddress = ipOf(6, 0n);
const lastAddress = ipOf(6, (1n << 128n) - 1n);

/**
 * All leases of a network, or of every network, by network and address, a page at a time. Each page is read when it is
 * asked for, so later pages show changes made meanwhile; no address comes twice.
 */
export function* leasePages(store: Store, network?: string): Generator<readonly Lease[], void> {
  let after = { network: network ?? "", ip: firstAddress };
  for (;;) {
    const page = store.select({ by: "page", after, limit: pageLeases });
    const wanted = network === undefined ? page : page.filter((lease) => lease.owner.network === network);
    if (wanted.length > 0) yield wanted;
    const end = wanted.at(-1);
    if (end === undefined || wanted.length < pageLeases) return;
    after = { network: end.owner.network, ip: end.address.ip };
  }
}

/** As `leasePages`, without the leases whose cooldown is over at `nowMs`, since their addresses are free. */
export function* keptPages(store: Store, nowMs: number, network?: string): Generator<readonly Lease[], void> {
  const isCooled = cooledTest(store, nowMs);
  for (const page of leasePages(store, network)) {
    const kept = page.filter((lease) => !isCooled(lease));
    if (kept.length > 0) yield kept;
  }
}

/** How many leases of a network are in which state. */
export interface NetworkCounts {
  readonly network: string;
  readonly allocated: number;
  readonly releasing: number;
  readonly cooling: number;
}

/** The counts of every network that has a lease, without leases whose cooldown is over. */
export function countsIn(store: Store, nowMs: number): readonly NetworkCounts[] {
  return networksIn(store).map((network) => {
    const cooledByMs = cooledBy(nowMs, cooldownOf(store, network));
    const { taken, releasing, cooling } = store.count(network, firstAddress, lastAddress, cooledByMs);
    return { network, allocated: Number(taken) - releasing - cooling, releasing, cooling };
  });
}

/** Every network that has a lease, in order: one look-up for each, however many leases it has. */
export function networksIn(store: Store): readonly string[] {
  const networks: string[] = [];
  for (;;) {
    const after = { network: networks.at(-1) ?? "", ip: networks.length === 0 ? firstAddress : lastAddress };
    const [lease] = store.select({ by: "page", after, limit: 1 });
    if (lease === undefined) return networks;
    networks.push(lease.owner.network);
  }
}
