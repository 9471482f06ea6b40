import type { Store } from "../store/store.ts";

/**
 * What the store remembers of a network's past with host-local:
 * - `none`: there was no directory when the network was first used;
 * - `taken`: its leases are here, and the directory counts for nothing any more;
 * - `exported`: its leases were written to the directory, where host-local may have gone on since.
 */
export type TakeOverRecord =
  | { readonly t: "none" }
  | {
      readonly t: "taken" | "exported";
      readonly directory: string;
      /** The store's generation counter then: leases above it are younger than the cursors that came along. */
      readonly generation: number;
    };

const markOf = (network: string): string => `host-local ${network}`;

/** Whether there is nothing to take over, at the price of one look-up: asked at every ADD. */
export function isSettled(store: Pick<Store, "mark">, network: string): boolean {
  const value = store.mark(markOf(network));
  return value !== undefined && !value.startsWith("exported ");
}

/** `undefined` where the network was never used. */
export function readRecord(store: Store, network: string): TakeOverRecord | undefined {
  const value = store.mark(markOf(network));
  if (value === undefined) return undefined;
  const match = /^(taken|exported) (\d+) (.+)$/s.exec(value);
  if (match === null) return { t: "none" };
  return { t: match[1] as "taken" | "exported", generation: Number(match[2]), directory: match[3] ?? "" };
}

export function writeRecord(store: Store, network: string, record: TakeOverRecord): void {
  store.setMark(markOf(network), record.t === "none" ? "none" : `${record.t} ${record.generation} ${record.directory}`);
}
