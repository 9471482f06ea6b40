import type { Lease } from "../../../ipam/mod.ts";
import { ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { type Cidr, contains, firstOf, formatCidr, formatIp } from "../../../shared/net/ip.ts";
import type { Finding } from "./finding.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";

interface Holder {
  readonly owner: Owner;
  readonly by: "lease" | "interface" | "port";
  readonly evidence: string;
}

/** Addresses that two attachments have, by their leases, interfaces or ports, of whatever network. */
export function addressFindings(snapshot: NodeSnapshot): readonly Finding[] {
  const holders: (readonly [string, Holder])[] = [];
  const blocks = blocksOf(snapshot.leases ?? []);
  for (const { owner, address, state, generation } of snapshot.leases ?? [])
    if (state === "allocated")
      holders.push([formatIp(address.ip), { owner, by: "lease", evidence: String(generation) }]);
  // Addresses of other blocks do not count: later plugins may give every pod the same one.
  for (const { owner, addresses = [], index } of snapshot.interfaces ?? [])
    for (const ip of addresses.filter((one) => blocks.some((block) => contains(block, one))))
      holders.push([formatIp(ip), { owner, by: "interface", evidence: String(index) }]);
  for (const { owner, ips, uuid } of snapshot.switch?.ports ?? [])
    for (const ip of ips) holders.push([formatIp(ip), { owner, by: "port", evidence: uuid }]);
  const byAddress = Map.groupBy(holders, ([address]) => address);
  return [...byAddress].flatMap(([address, found]) =>
    twice(
      address,
      found.map(([, holder]) => holder),
    ),
  );
}

/** The subnets that leases are of, each once. */
function blocksOf(leases: readonly Lease[]): readonly Cidr[] {
  const blocks = leases.map(({ address: { ip, prefix } }) => ({ ip: firstOf({ ip, prefix }), prefix }));
  return [...new Map(blocks.map((block) => [formatCidr(block), block])).values()];
}

function twice(address: string, holders: readonly Holder[]): readonly Finding[] {
  const byOwner = Map.groupBy(holders, ({ owner }) => ownerKey(owner));
  if (byOwner.size < 2) return [];
  const who = [...byOwner.values()].map(([first, ...more]) => {
    const { owner } = first as Holder;
    const by = [first as Holder, ...more].map((one) => one.by).join(" and ");
    return `"${owner.ifname}" of "${owner.sandboxId}" in network "${owner.network}" (by its ${by})`;
  });
  return [
    {
      severity: "error",
      code: "address-twice",
      what: `${address} is held by ${who.sort().join(" and by ")}`,
      trusts: "no source",
      why: "Two pods with one address take each other's packets; which of them is right nobody here can tell",
      todo: "remove the pod that should not have it; where two networks have overlapping subnets, change one of them",
      evidence: holders
        .map(({ evidence }) => evidence)
        .sort()
        .join(" "),
    },
  ];
}
