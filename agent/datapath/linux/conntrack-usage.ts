import { readSysctl } from "./node-sysctls.ts";

/** The fill level of a connection tracking table that is reported, early enough to find the cause. */
const warningShare = 0.8;

/**
 * Whether a table of connections is nearly full. A full one takes no new connection, of any pod.
 * @param whose continues "connection tracking of …"
 * @returns sentences
 */
export function nearlyFull(whose: string, held: number, most: number): readonly string[] {
  // Also where one of them cannot be read.
  if (!(most > 0 && held >= most * warningShare)) return [];
  return [
    `connection tracking of ${whose} holds ${held} of ${most} connections: when it is full, no pod can open another`,
  ];
}

/** The node's own kernel, in this process's network namespace; nothing where it tracks no connections. */
export function kernelNearlyFull(): readonly string[] {
  const [held, most] = ["count", "max"].map((name) =>
    Number(readSysctl(`/proc/sys/net/netfilter/nf_conntrack_${name}`) ?? Number.NaN),
  );
  return nearlyFull("the node's kernel (net.netfilter.nf_conntrack_max)", held ?? Number.NaN, most ?? Number.NaN);
}
