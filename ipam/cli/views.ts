import { formatIp } from "../../shared/net/ip.ts";
import { formatInterval } from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import type { Lease } from "../lease.ts";
import { type Cell, mainKind, pictureOf } from "./picture.ts";
import { type AddressKind, type Pool, poolsOfConfig } from "./pools.ts";

export { type LeaseView, leaseView } from "./lease-view.ts";

/** The addresses of one range set, as an operator's documents have them. */
export interface PoolView {
  readonly network: string;
  readonly range: string;
  readonly gateways: readonly string[];
  /** In digits, because an IPv6 network has more addresses than a double can count. */
  readonly total: string;
  readonly allocated: number;
  readonly releasing: number;
  readonly cooling: number;
  readonly excluded: string;
  readonly free: string;
  readonly strips: readonly StripView[];
}

interface StripView {
  readonly first: string;
  readonly last: string;
  readonly addressesPerCell: string;
  /** One of `letters` for each cell. */
  readonly cells: string;
  readonly rest?: string;
}

const letters: Readonly<Record<AddressKind, string>> = {
  allocated: "a",
  releasing: "r",
  cooling: "c",
  excluded: "x",
  gateway: "g",
  free: ".",
};

/**
 * The pools of a network and what is in each.
 * @param leases those that keep their addresses, by address; it is called twice for each pool
 */
export const poolViews = (network: string, config: IpamConfig, leases: () => Iterable<Lease>): readonly PoolView[] =>
  poolsOfConfig(network, config).map((pool) => poolView(pool, leases));

function poolView(pool: Pool, leases: () => Iterable<Lease>): PoolView {
  const { tally, total, strips } = pictureOf(pool, leases);
  return {
    network: pool.network,
    range: pool.range,
    gateways: pool.gateways.map(formatInterval),
    total: String(total),
    allocated: Number(tally.allocated),
    releasing: Number(tally.releasing),
    cooling: Number(tally.cooling),
    excluded: String(tally.excluded),
    free: String(tally.free),
    strips: strips.flatMap(({ cells, perCell, rest }): StripView[] => {
      const [first, last] = [cells[0], cells.at(-1)];
      if (first === undefined || last === undefined) return [];
      return [
        {
          first: formatIp(first.first),
          last: formatIp(last.last),
          addressesPerCell: String(perCell),
          cells: cells.map((cell: Cell) => letters[mainKind(cell, pool)]).join(""),
          ...(rest === undefined ? {} : { rest: formatInterval(rest) }),
        },
      ];
    }),
  };
}
