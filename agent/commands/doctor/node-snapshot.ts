import type { Lease } from "../../../ipam/mod.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import type { Ip } from "../../../shared/net/ip.ts";
import type { StatusResponse } from "../../../shared/proto/pipette-messages.ts";
import type { BareNamespace } from "../../protocols/netlink/mod.ts";
import type { RuntimeList } from "./runtime-list.ts";

/** A pod's interface, by its end on the node. */
export interface SeenInterface {
  readonly owner: Owner;
  readonly hostIfname: string;
  /** `true` where the address is a lease of our own allocator. */
  readonly ownLease: boolean;
  /** Tells it from a later one of its name. */
  readonly index: number;
  /** In the pod; `undefined` where nobody can look there. */
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

/** Every source at one moment, or nearly: they are asked one after the other. `undefined`: it could not be asked. */
export interface NodeSnapshot {
  readonly nowMs: number;
  readonly bootId: string;
  /** Names of the networks that the agent serves. */
  readonly networks: readonly string[];
  readonly janitorIntervalMs: number;
  readonly agent: SeenAgent;
  /** Of every network, allocated or releasing. */
  readonly leases: readonly Lease[] | undefined;
  readonly departures: readonly Owner[];
  readonly interfaces: readonly SeenInterface[] | undefined;
  readonly halfMade: readonly HalfMade[];
  /** Addresses in the named network namespaces of the node, as `formatIp` writes them. */
  readonly namespaceAddresses: ReadonlySet<string>;
  /** Namespaces of sandboxes in which nothing is up: their pods have no network, whoever should have wired them. */
  readonly bareNamespaces: readonly BareNamespace[];
  /** Absent without Open vSwitch, or where its database could not be asked. */
  readonly switch?: SeenSwitch;
  readonly runtime?: RuntimeList;
}
