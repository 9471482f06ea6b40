import { formatIp, ipOf, parseIp } from "../../shared/net/ip.ts";

/** A strip of addresses, cell by cell. */
export interface Strip {
  readonly first: string;
  readonly last: string;
  readonly addressesPerCell: string;
  readonly cells: string;
}

/** The addresses that a cell stands for: one, or from the first to the last. */
export function addressesIn(strip: Strip, cell: number): { readonly first: string; readonly last: string } | undefined {
  const [first, end] = [parseIp(strip.first), parseIp(strip.last)];
  if (first === undefined || end === undefined) return undefined;
  const size = BigInt(strip.addressesPerCell);
  if (size < 1n) return undefined;
  // Cells begin at multiples of their size, so the first may be cut.
  const start = first.value - (first.value % size) + BigInt(cell) * size;
  const from = start < first.value ? first.value : start;
  const to = start + size - 1n > end.value ? end.value : start + size - 1n;
  if (from > to) return undefined;
  return { first: formatIp(ipOf(first.family, from)), last: formatIp(ipOf(first.family, to)) };
}

/** Where an address lies in a strip; `undefined` where it does not. */
export function cellOf(strip: Strip, address: string): number | undefined {
  const [first, end, ip] = [strip.first, strip.last, address].map((text) => parseIp(text));
  if (first === undefined || end === undefined || ip === undefined || ip.family !== first.family) return undefined;
  if (ip.value < first.value || ip.value > end.value) return undefined;
  const size = BigInt(strip.addressesPerCell);
  if (size < 1n) return undefined;
  return Number((ip.value - (first.value - (first.value % size))) / size);
}
