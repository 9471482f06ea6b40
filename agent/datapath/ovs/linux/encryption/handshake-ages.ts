import type { DeviceState } from "../../../../protocols/wireguard/mod.ts";

/** What is known of the last time at which two nodes agreed on keys. */
export type Agreed =
  | { readonly t: "never" }
  | { readonly t: "ago"; readonly ms: number }
  /** The clock was set back before this process first looked; it was at least so long ago. */
  | { readonly t: "unknown"; readonly ms: number };

interface Seen {
  /** As the device tells it: seconds of the clock. */
  readonly at: number;
  readonly isKnown: boolean;
  /** Milliseconds of a clock that nobody sets. */
  readonly steadyMs: number;
}

/**
 * How long ago nodes agreed on keys. The device tells it by the clock, which somebody may set: so that is believed for
 * what happened before the first look alone.
 */
export class HandshakeAges {
  readonly #seen = new Map<string, Seen>();
  #lookedMs: number | undefined;

  /**
   * @param clockMs milliseconds of the clock
   * @param steadyMs milliseconds of a clock that nobody sets
   * @returns the latest of the times that are new, in milliseconds of the clock; 0: none is new
   */
  look({ peers }: Pick<DeviceState, "peers">, clockMs: number, steadyMs: number): number {
    const sinceLook = steadyMs - (this.#lookedMs ?? steadyMs);
    const isFirst = this.#lookedMs === undefined;
    this.#lookedMs = steadyMs;
    const keys = new Set(peers.map(({ publicKey }) => publicKey));
    for (const key of this.#seen.keys()) if (!keys.has(key)) this.#seen.delete(key);
    let newest = 0;
    for (const { publicKey, handshakeAt: at } of peers) {
      if (at === this.#seen.get(publicKey)?.at) continue;
      if (at === 0) {
        this.#seen.delete(publicKey);
        continue;
      }
      newest = Math.max(newest, at * 1_000);
      const byClock = clockMs - at * 1_000;
      const ago = Math.max(0, isFirst ? byClock : Math.min(byClock, sinceLook));
      // Seconds are rounded.
      this.#seen.set(publicKey, { at, isKnown: !isFirst || byClock > -1_000, steadyMs: steadyMs - ago });
    }
    return newest;
  }

  /** Of the peer with this key. */
  of(key: string, steadyMs: number): Agreed {
    const seen = this.#seen.get(key);
    if (seen === undefined) return { t: "never" };
    return { t: seen.isKnown ? "ago" : "unknown", ms: steadyMs - seen.steadyMs };
  }
}
