import type { NetworkNamespace } from "./network-namespace.ts";

/**
 * Flushes a namespace's neighbour table. `ip` reads the entries and then deletes them one by one, and stops with an
 * error if the kernel has dropped one in between: then it is run again.
 * @param which in `ip`'s words: `all`, `to 10.0.0.1`
 */
export async function forgetNeighbours(namespace: Pick<NetworkNamespace, "run">, which: string): Promise<void> {
  for (let looks = 0; ; looks++) {
    try {
      await namespace.run(`ip neigh flush ${which}`);
      return;
    } catch (caught) {
      if (looks === maxLooks || !(caught instanceof Error && caught.message.includes("No such file"))) throw caught;
    }
  }
}

/** Hardly any entry disappears between two attempts: more failures than this have another cause. */
const maxLooks = 10;
