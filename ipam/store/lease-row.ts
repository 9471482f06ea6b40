import type { SQLInputValue } from "node:sqlite";
import type { Lease, LeaseState } from "../lease.ts";
import { type AddressKey, ipOfKey, keyOf } from "./address-key.ts";

/** A row of the table `lease`. */
export interface LeaseRow {
  readonly network: string;
  readonly address: AddressKey;
  readonly prefix: number;
  readonly gateway: AddressKey | null;
  readonly range_set: number;
  readonly sandbox_id: string;
  readonly ifname: string;
  readonly state: LeaseState;
  readonly pod_namespace: string | null;
  readonly pod_name: string | null;
  readonly pod_uid: string | null;
  readonly boot_id: string;
  readonly generation: number;
  readonly allocated_at_ms: number;
  readonly released_at_ms: number | null;
  readonly sticky: 0 | 1;
}

export function leaseOf(row: LeaseRow): Lease {
  const { pod_namespace: namespace, pod_name: name, pod_uid: uid } = row;
  return {
    owner: { network: row.network, sandboxId: row.sandbox_id, ifname: row.ifname },
    rangeSet: row.range_set,
    address: { ip: ipOfKey(row.address), prefix: row.prefix },
    ...(row.gateway === null ? {} : { gateway: ipOfKey(row.gateway) }),
    state: row.state,
    ...(name === null ? {} : { pod: { namespace: namespace ?? "", name, uid: uid ?? "" } }),
    bootId: row.boot_id,
    generation: row.generation,
    allocatedAtMs: row.allocated_at_ms,
    ...(row.released_at_ms === null ? {} : { releasedAtMs: row.released_at_ms }),
    ...(row.sticky === 0 ? {} : { sticky: true }),
  };
}

/** `network` and `address`, the first of the columns. */
export const keyColumns = 2;

/** All columns in the table's order. @param key of its address */
export function columnsOf(lease: Lease, key: AddressKey): SQLInputValue[] {
  const { owner, gateway, pod } = lease;
  return [
    owner.network,
    key,
    lease.address.prefix,
    gateway === undefined ? null : keyOf(gateway),
    lease.rangeSet,
    owner.sandboxId,
    owner.ifname,
    lease.state,
    pod?.namespace ?? null,
    pod?.name ?? null,
    pod?.uid ?? null,
    lease.bootId,
    lease.generation,
    lease.allocatedAtMs,
    lease.releasedAtMs ?? null,
    lease.sticky === true ? 1 : 0,
  ];
}
