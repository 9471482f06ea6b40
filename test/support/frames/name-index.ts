import type { NetworkNamespace } from "../network-namespace.ts";

/** The number of an interface in its namespace. */
export async function nameIndex(namespace: NetworkNamespace, ifname: string): Promise<number> {
  const [link] = JSON.parse(await namespace.run(`ip -j link show dev ${ifname}`)) as { ifindex: number }[];
  if (link === undefined) throw new Error(`No interface "${ifname}"`);
  return link.ifindex;
}
