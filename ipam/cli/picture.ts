import { type Ip, plus } from "../../shared/net/ip.ts";
import { type Interval, intervalAt } from "../config/intervals.ts";
import type { Lease } from "../lease.ts";
import { type AddressKind, addressKinds, Counter, kindOf, type Pool, type Tally, taken } from "./pools.ts";

/** One address, or as many neighbours as it takes for the picture to fit. */
export interface Cell {
  readonly first: Ip;
  readonly last: Ip;
  readonly tally: Tally;
  /** The lease, in a cell of one address. */
  readonly lease?: Lease;
}

/** A stretch of a pool, ready to be drawn. */
export interface Strip {
  readonly cells: readonly Cell[];
  /** Addresses in a full cell: a power of two, and cells begin at its multiples. */
  readonly perCell: bigint;
  /** The part behind the cells that is not drawn because nothing in it is taken. */
  readonly rest?: Interval;
}

export interface Picture {
  readonly pool: Pool;
  readonly tally: Tally;
  readonly total: bigint;
  readonly strips: readonly Strip[];
}

/** Cells of one strip at most: 32 rows of 64. */
const maxCells = 2048n;
/** Addresses that a shortened strip shows at least. */
const leastShown = 256n;

/**
 * Draws a pool. `leases` is called twice, and each time gives them in order of their addresses: first to find how far
 * they reach.
 */
export function pictureOf(pool: Pool, leases: () => Iterable<Lease>): Picture {
  const counter = new Counter(pool);
  const highest = new Map<Interval, Ip>();
  for (const lease of leases()) {
    const window = intervalAt(pool.windows, lease.address.ip);
    if (window === undefined) continue;
    counter.add(lease);
    highest.set(window, lease.address.ip);
  }
  const plans = pool.windows.map((window) => planOf(pool, window, highest.get(window)));
  for (const lease of leases()) {
    const plan = plans.find(({ shown }) => intervalAt([shown], lease.address.ip) !== undefined);
    if (plan === undefined) continue;
    const cell = plan.cells[Number(lease.address.ip.value / plan.perCell - plan.shown.first.value / plan.perCell)];
    cell?.counter.add(lease);
    if (cell !== undefined && plan.perCell === 1n) cell.lease = lease;
  }
  return {
    pool,
    tally: counter.tally,
    total: counter.total,
    strips: plans.map(({ perCell, rest, cells }) => ({
      perCell,
      ...(rest === undefined ? {} : { rest }),
      cells: cells.map(
        ({ first, last, counter: { tally }, lease }): Cell => ({
          ...{ first, last, tally },
          ...(lease === undefined ? {} : { lease }),
        }),
      ),
    })),
  };
}

interface PlannedCell extends Interval {
  readonly counter: Counter;
  lease?: Lease;
}

interface Plan {
  readonly shown: Interval;
  readonly rest: Interval | undefined;
  readonly perCell: bigint;
  readonly cells: readonly PlannedCell[];
}

function planOf(pool: Pool, window: Interval, highest: Ip | undefined): Plan {
  const shown = shownOf(window, highest);
  const rest = shown.last.value === window.last.value ? undefined : { first: plus(shown.last, 1n), last: window.last };
  const perCell = powerOfTwo((sizeOf(shown) + maxCells - 1n) / maxCells);
  const cells: PlannedCell[] = [];
  for (let first = shown.first; first.value <= shown.last.value; ) {
    const end = (first.value / perCell + 1n) * perCell - 1n;
    const last = { family: first.family, value: end < shown.last.value ? end : shown.last.value };
    cells.push({ first, last, counter: new Counter(pool, [{ first, last }]) });
    first = plus(last, 1n);
  }
  return { shown, rest, perCell, cells };
}

/** Of a large range that was mostly never used only the beginning is drawn. */
function shownOf(window: Interval, highest: Ip | undefined): Interval {
  const size = sizeOf(window);
  if (size <= maxCells) return window;
  const top = highest?.value ?? window.first.value;
  const used = top - window.first.value + 1n;
  const step = powerOfTwo(used < leastShown ? leastShown : used);
  const last = (top / step + 1n) * step - 1n;
  if ((last - window.first.value) * 2n > size) return window;
  return { first: window.first, last: { family: window.first.family, value: last } };
}

const sizeOf = ({ first, last }: Interval): bigint => last.value - first.value + 1n;

/** The lowest power of two that is `least` or above. */
function powerOfTwo(least: bigint): bigint {
  let power = 1n;
  while (power < least) power *= 2n;
  return power;
}

/** Cells side by side, behind `offset` empty places. */
export interface Row {
  readonly offset: number;
  readonly cells: readonly [Cell, ...Cell[]];
}

/** Rows begin at multiples of a full row's size, so that a column means the same in each. */
export function rowsOf({ cells, perCell }: Strip, perRow: number): readonly Row[] {
  const rows: Row[] = [];
  for (let i = 0; i < cells.length; ) {
    const start = cells[i] as Cell;
    const offset = cells.length <= perRow ? 0 : Number((start.first.value / perCell) % BigInt(perRow));
    const more = cells.slice(i + 1, i + perRow - offset);
    rows.push({ offset, cells: [start, ...more] });
    i += 1 + more.length;
  }
  return rows;
}

/** The kind that a cell is drawn as: taken addresses count before free ones. */
export function mainKind(cell: Cell, pool: Pool): AddressKind {
  if (cell.first.value === cell.last.value) return kindOf(pool, cell.first, cell.lease?.state);
  const told = addressKinds.filter((kind) => kind !== "free" && kind !== "gateway" && cell.tally[kind] > 0n);
  return told.sort((a, b) => (cell.tally[b] > cell.tally[a] ? 1 : -1))[0] ?? "free";
}

/** Between 0 and 1: how much of the cell has a lease. */
export const density = ({ first, last, tally }: Cell): number =>
  Number((taken(tally) * 1000n) / (last.value - first.value + 1n)) / 1000;
