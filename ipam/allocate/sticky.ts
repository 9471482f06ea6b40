import type { Owner, Pod } from "../../shared/cni/types.ts";
import type { Ip } from "../../shared/net/ip.ts";
import { intervalAt } from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { type RangeSet, rangeOf } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { PodPlace, Store } from "../store/store.ts";

/** Addresses of removed pods that are remembered for sticky networks; they take about 2 MB. */
export const maxRememberedAddresses = 16_384;

const placeOf = ({ network, ifname }: Owner, { namespace, name }: Pod): PodPlace => ({
  network,
  ifname,
  namespace,
  name,
});

/**
 * The address of this set that the pod had last, if it is free or still cooling from this same pod. An address that
 * cools after another pod's use is not given.
 */
export function lastAddress(
  store: Store,
  owner: Owner,
  pod: Pod | undefined,
  set: RangeSet,
  config: IpamConfig,
): Ip | undefined {
  if (!config.sticky || pod === undefined) return undefined;
  const ip = store.remembered(placeOf(owner, pod)).find((noted) => rangeOf(set, noted) !== undefined);
  if (ip === undefined || intervalAt(config.reserved, ip) !== undefined) return undefined;
  const [lease] = store.select({ by: "address", network: owner.network, ip });
  return lease === undefined || (lease.state === "cooling" && isOf(lease, pod)) ? ip : undefined;
}

const isOf = (lease: Lease, { namespace, name }: Pod): boolean =>
  lease.pod?.namespace === namespace && lease.pod.name === name;

/** To be called when the lease is released: until then the lease itself shows the pod's address. */
export function noteAddress(store: Store, { owner, pod, sticky, rangeSet, address }: Lease): void {
  if (sticky === undefined || pod === undefined) return;
  store.remember(placeOf(owner, pod), rangeSet, address.ip, maxRememberedAddresses);
}
