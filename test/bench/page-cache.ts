import { execa } from "execa";

/**
 * In which state executables lie in the page cache. A file that was written or read from end to end lies there in large
 * pieces; what came in by page faults stays in small ones that are dear to map: the same executable of 116 MB takes
 * 9.2 ms then, where it took 7.2. A kernel that reclaims idle page cache brings every executable into the second state
 * after some minutes, so that users' nodes are there.
 */
export const cacheStates = ["read", "faulted"] as const;
export type CacheState = (typeof cacheStates)[number];

/**
 * Brings executables of both sides into the same state. What a process has mapped meanwhile cannot be dropped: it stays
 * as it is. The first round of a comparison, which does not count, faults in what it needs.
 */
export async function bringInto(state: CacheState, executables: readonly string[]): Promise<void> {
  for (const executable of executables) {
    // What is not on the disk yet is not dropped.
    await execa("sync", [executable]);
    await execa("dd", [`if=${executable}`, "iflag=nocache", "count=0", "status=none"]);
    if (state === "read") await execa("dd", [`if=${executable}`, "of=/dev/null", "bs=1M", "status=none"]);
  }
}
