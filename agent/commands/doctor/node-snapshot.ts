import type { Lease } from "../../../ipam/mod.ts";
import { ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import type { StatusResponse } from "../../../shared/proto/pipette-messages.ts";
import type { BareNamespace } from "../../protocols/netlink/mod.ts";
import type { RuntimeList } from "./runtime-list.ts";

/** A pod's interface, by its end on the node. */
export interface SeenInterface {
  readonly owner: Owner;
  readonly hostIfname: string;
  /** `true` where the address is a lease of our own allocator. */
  readonly ownLease: boolean;
  /** Tells it from a later interface of the same name. */
  readonly index: number;
  /** Its addresses in the pod; `undefined` if they cannot be read. */
  readonly addresses: readonly Ip[] | undefined;
  /** Bytes; absent where it is not known. */
  readonly mtu?: number;
}

/** An interface that a killed agent was making, or that is being deleted. */
export interface HalfMade {
  readonly name: string;
  readonly index: number;
  readonly state: "arriving" | "leaving";
}

/** A pod's port in the database of Open vSwitch. */
export interface SeenPort {
  readonly owner: Owner;
  readonly name: string;
  readonly uuid: string;
  readonly ips: readonly Ip[];
  /** Absent while the switch has not made it. */
  readonly ofport?: number;
  readonly problem?: string;
}

/** The switch at one moment. */
export interface SeenSwitch {
  readonly ports: readonly SeenPort[];
  /** Numbers of every port of the bridge. */
  readonly numbers: ReadonlySet<number>;
  /** Numbers of the ports that pods' flows speak of; `undefined` where the switch could not be asked. */
  readonly flowPorts: ReadonlySet<number> | undefined;
}

export type SeenAgent =
  | { readonly t: "answers"; readonly status: StatusResponse }
  | { readonly t: "away"; readonly reason: string };

/** The state of every source, read one after the other. `undefined`: it could not be read. */
export interface NodeSnapshot {
  readonly nowMs: number;
  readonly bootId: string;
  /** Names of the networks that the agent serves. */
  readonly networks: readonly string[];
  readonly janitorIntervalMs: number;
  readonly agent: SeenAgent;
  /** Of every network, allocated or releasing. */
  readonly leases: readonly Lease[] | undefined;
  readonly pendingDetaches: readonly Owner[];
  readonly interfaces: readonly SeenInterface[] | undefined;
  readonly halfMade: readonly HalfMade[];
  /** Addresses in the named network namespaces of the node, as `formatIp` writes them. */
  readonly namespaceAddresses: ReadonlySet<string>;
  /**
   * Namespaces of sandboxes without an interface that is up: their pods have no network, whoever should have configured
   * it.
   */
  readonly bareNamespaces: readonly BareNamespace[];
  /** Absent without Open vSwitch, or where its database could not be asked. */
  readonly switch?: SeenSwitch;
  readonly runtime?: RuntimeList;
}

/** Everything that is known of one attachment. */
export interface AttachmentView {
  readonly owner: Owner;
  /** Allocated, in the order of their addresses. */
  readonly leases: readonly Lease[];
  /** Released but not finished: a lease in `releasing`, or a pending detach. */
  readonly departing: boolean;
  readonly releasedAtMs: number;
  readonly seen: SeenInterface | undefined;
  readonly port: SeenPort | undefined;
}

/** Views of every attachment in any source. */
export function attachmentViews(snapshot: NodeSnapshot): readonly AttachmentView[] {
  const { leases = [], pendingDetaches, interfaces = [], networks } = snapshot;
  const departed = new Set(pendingDetaches.map(ownerKey));
  const owners = new Map<string, Owner>();
  const see = (owner: Owner): void => void owners.set(ownerKey(owner), owner);
  // A lease imported from host-local without an interface name counts for any interface of the sandbox.
  const served = leases.filter(({ owner }) => networks.includes(owner.network) && owner.ifname !== "");
  for (const { owner } of [...served, ...interfaces, ...(snapshot.switch?.ports ?? [])]) see(owner);
  for (const owner of pendingDetaches) if (networks.includes(owner.network)) see(owner);
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
      departing: departed.has(key) || (releasing.length > 0 && allocated.length === 0),
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
