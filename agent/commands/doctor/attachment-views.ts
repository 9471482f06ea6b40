import type { Lease } from "../../../ipam/mod.ts";
import { ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import type { NodeSnapshot, SeenInterface, SeenPort } from "./node-snapshot.ts";

/** Everything that is known of one attachment. */
export interface AttachmentView {
  readonly owner: Owner;
  /** Allocated, in the order of their addresses. */
  readonly leases: readonly Lease[];
  /** Given up and not finished: a lease in `releasing`, or a departure on record. */
  readonly isLeaving: boolean;
  readonly releasedAtMs: number;
  readonly seen: SeenInterface | undefined;
  readonly port: SeenPort | undefined;
}

/** Of every attachment that any source speaks of. */
export function attachmentViews(snapshot: NodeSnapshot): readonly AttachmentView[] {
  const { leases = [], departures, interfaces = [], networks } = snapshot;
  const departed = new Set(departures.map(ownerKey));
  const owners = new Map<string, Owner>();
  const see = (owner: Owner): void => void owners.set(ownerKey(owner), owner);
  // One that host-local noted without an interface's name is any interface's of the sandbox.
  const served = leases.filter(({ owner }) => networks.includes(owner.network) && owner.ifname !== "");
  for (const { owner } of [...served, ...interfaces, ...(snapshot.switch?.ports ?? [])]) see(owner);
  for (const owner of departures) if (networks.includes(owner.network)) see(owner);
  const seen = new Map(interfaces.map((one) => [ownerKey(one.owner), one]));
  const ports = new Map(snapshot.switch?.ports.map((one) => [ownerKey(one.owner), one]));
  const byOwner = Map.groupBy(leases, ({ owner }) => ownerKey(owner));
  return [...owners].map(([key, owner]) => {
    const own = byOwner.get(key) ?? byOwner.get(ownerKey({ ...owner, ifname: "" })) ?? [];
    const releasing = own.filter(({ state }) => state === "releasing");
    const allocated = own.filter(({ state }) => state === "allocated");
    return {
      owner,
      leases: allocated,
      isLeaving: departed.has(key) || (releasing.length > 0 && allocated.length === 0),
      releasedAtMs: Math.max(0, ...releasing.map(({ releasedAtMs = 0 }) => releasedAtMs)),
      seen: seen.get(key),
      port: ports.get(key),
    };
  });
}

/** For messages. */
export const nameOf = ({ network, sandboxId, ifname }: Owner): string =>
  `"${ifname}" of "${sandboxId}" in network "${network}"`;

/** Which addresses these are, whatever their order. */
export const textOf = (ips: readonly Ip[]): string => ips.map(formatIp).sort().join(", ");
