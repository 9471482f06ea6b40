import type { ClusterNode, Registration } from "../../agent/cluster/node-registry.ts";
import { formatCidr, parseIp } from "../../shared/net/ip.ts";

/** What the `i`th machine of a test says of itself. */
export const machine = (i: number): Registration => ({
  name: `n${i}`,
  uid: `uid-${i}`,
  addresses: [parseIp(`192.0.${i >> 8}.${i & 255}`)!],
});

export const subnetsOf = (nodes: Iterable<ClusterNode>): string[] =>
  [...nodes].flatMap(({ subnets }) => subnets.map(formatCidr));

/** Looks until it is so, for half a minute at most. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const until = performance.now() + 30_000; !(await isSo()); await Bun.sleep(20)) {
    if (performance.now() > until) throw new Error(`Waited in vain: ${what}`);
  }
}
