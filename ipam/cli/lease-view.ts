import { podTitle } from "../../shared/cni/pod-name.ts";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import { formatAge, formatTable } from "../../shared/terminal/table.ts";
import type { Lease, LeaseState } from "../lease.ts";

/** Long enough to tell sandboxes apart, as runtimes' own tools show them. */
const idChars = 13;

/** A lease as `--json` has it; what is unknown is left out. */
export interface LeaseView {
  readonly network: string;
  /** With prefix length. */
  readonly address: string;
  readonly gateway?: string;
  readonly state: LeaseState;
  readonly containerId: string;
  readonly ifname: string;
  readonly podNamespace?: string;
  readonly podName?: string;
  readonly podUid?: string;
  readonly rangeSet: number;
  readonly bootId?: string;
  readonly generation: number;
  /** RFC 3339. */
  readonly allocatedAt: string;
  readonly releasedAt?: string;
}

export function leaseView({ owner, address, gateway, state, pod, releasedAtMs, ...lease }: Lease): LeaseView {
  return {
    network: owner.network,
    address: formatCidr(address),
    ...(gateway === undefined ? {} : { gateway: formatIp(gateway) }),
    state,
    containerId: owner.sandboxId,
    ifname: owner.ifname,
    ...(pod === undefined ? {} : { podNamespace: pod.namespace, podName: pod.name, podUid: pod.uid }),
    rangeSet: lease.rangeSet,
    ...(lease.bootId === "" ? {} : { bootId: lease.bootId }),
    generation: lease.generation,
    allocatedAt: timeText(lease.allocatedAtMs),
    ...(releasedAtMs === undefined ? {} : { releasedAt: timeText(releasedAtMs) }),
  };
}

export function leaseTable(leases: readonly Lease[], nowMs: number): string {
  const header = ["ADDRESS", "STATE", "NETWORK", "SANDBOX", "INTERFACE", "POD", "AGE"];
  const rows = leases.map((lease) => [
    formatIp(lease.address.ip),
    lease.state,
    lease.owner.network,
    shortId(lease.owner.sandboxId),
    lease.owner.ifname,
    podText(lease) ?? "-",
    formatAge(nowMs - inStateSinceMs(lease)),
  ]);
  return formatTable([header, ...rows]);
}

export const shortId = (id: string): string => (id.length > idChars ? id.slice(0, idChars) : id);

export const podText = ({ pod }: Lease): string | undefined => (pod === undefined ? undefined : podTitle(pod));

/** The start of its state: for a released lease the release, which decides when the address is given again. */
export const inStateSinceMs = ({ releasedAtMs, allocatedAtMs }: Lease): number => releasedAtMs ?? allocatedAtMs;

/** RFC 3339; a damaged database may hold a number that is no time. */
export function timeText(ms: number): string {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? `${ms} ms` : time.toISOString();
}
