import type { AddressesDocument, DocumentLease, DocumentPool } from "../../shared/documents/mod.ts";
import type { Health } from "../parts/mark.tsx";
import type { OfNode } from "../stream/store.ts";

/** Addresses of one range set of one node. */
export interface NodePool {
  readonly node: string;
  readonly pool: DocumentPool;
  /** Of what can be given out, from 0 to 1. */
  readonly free: number;
}

export const poolsOf = (all: readonly OfNode<AddressesDocument>[]): readonly NodePool[] =>
  all.flatMap(({ node, document }) => (document?.pools ?? []).map((pool) => ({ node, pool, free: shareOf(pool) })));

/** Numbers beyond what a double holds exactly are rounded, which a share does not show. */
function shareOf({ free, cooling, total }: DocumentPool): number {
  const all = Number(total);
  // Cooling ones are given out when nothing else is free.
  return all === 0 ? 0 : (Number(free) + cooling) / all;
}

/** The thresholds are those at which the agent warns. */
export const poolHealth = (free: number): Health => (free <= 0.05 ? "bad" : free <= 0.2 ? "warn" : "good");

export const fullest = (pools: readonly NodePool[]): NodePool | undefined =>
  pools.reduce<NodePool | undefined>((so, each) => (so === undefined || each.free < so.free ? each : so), undefined);

const hourMs = 3_600_000;

/** What the last hour's leases say of the next. */
export interface Forecast {
  /** More given out than released, an hour. */
  readonly perHour: number;
  /** Until none is free, at that pace; absent where they become no fewer, or it is longer than a year. */
  readonly fullInMs?: number;
}

export function forecast(pool: DocumentPool, leases: readonly DocumentLease[], nowMs: number): Forecast {
  const own = leases.filter(({ network }) => network === pool.network);
  const within = (text: string | undefined): boolean => text !== undefined && nowMs - Date.parse(text) <= hourMs;
  const taken = own.filter(({ allocatedAt }) => within(allocatedAt)).length;
  const released = own.filter(({ releasedAt }) => within(releasedAt)).length;
  const perHour = taken - released;
  const left = Number(pool.free) + pool.cooling;
  const fullInMs = (left / perHour) * hourMs;
  return perHour > 0 && fullInMs < 365 * 24 * hourMs ? { perHour, fullInMs } : { perHour };
}
