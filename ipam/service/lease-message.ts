import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import type { LeaseMessage } from "../../shared/proto/ipam-messages.ts";
import type { Lease } from "../lease.ts";

/** A lease as the service answers it: what is absent is empty, or 0. */
export function leaseMessage(lease: Lease): LeaseMessage {
  return {
    network: lease.owner.network,
    containerId: lease.owner.sandboxId,
    ifname: lease.owner.ifname,
    address: formatCidr(lease.address),
    gateway: lease.gateway === undefined ? "" : formatIp(lease.gateway),
    state: lease.state,
    podNamespace: lease.pod?.namespace ?? "",
    podName: lease.pod?.name ?? "",
    podUid: lease.pod?.uid ?? "",
    generation: lease.generation,
    allocatedAtMs: lease.allocatedAtMs,
    releasedAtMs: lease.releasedAtMs ?? 0,
  };
}
