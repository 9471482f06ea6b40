import type { NetworkNamespace } from "./network-namespace.ts";

/**
 * Has a namespace's kernel forget its neighbours. `ip` reads them and then takes them away one by one, and fails for one
 * that the kernel itself has dropped in between, with the rest undone: then it has to look again.
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

/** Between two looks hardly anything goes: more than this is something else. */
const maxLooks = 10;
