import { flag, int32, int64, type MessageOf, message, nested, repeated, text, texts } from "./wire.ts";

/**
 * The messages of `pipette.proto` around the service `Node`, proto3: what is absent reads as its zero value. What the
 * fields mean stands there. A test holds these tables against that text.
 */

export const Attachment = message(() => ({ containerId: text(1), ifname: text(2) }));
export type Attachment = MessageOf<typeof Attachment>;

/** `Problem` in the proto. */
export const NodeProblem = message(() => ({
  code: int32(1),
  message: text(2),
  advisory: flag(3),
}));
export type NodeProblem = MessageOf<typeof NodeProblem>;

export const GcRequest = message(() => ({
  network: text(1),
  valid: repeated(2, Attachment),
}));
export type GcRequest = MessageOf<typeof GcRequest>;

export const GcResponse = message(() => ({
  removed: repeated(1, Attachment),
  failures: texts(2),
  leftOut: int64(3),
}));
export type GcResponse = MessageOf<typeof GcResponse>;

export const StatusRequest = message(() => ({ network: text(1) }));
export type StatusRequest = MessageOf<typeof StatusRequest>;

export const RegistryTrouble = message(() => ({
  what: text(1),
  reason: text(2),
  sinceMs: int64(3),
}));
export type RegistryTrouble = MessageOf<typeof RegistryTrouble>;

export const PeerCounts = message(() => ({
  reachable: int64(1),
  lost: int64(2),
  silent: int64(3),
  unknown: int64(4),
}));
export type PeerCounts = MessageOf<typeof PeerCounts>;

export const PeerTrouble = message(() => ({
  node: text(1),
  state: text(2),
  message: text(3),
  sinceMs: int64(4),
}));
export type PeerTrouble = MessageOf<typeof PeerTrouble>;

export const StatusResponse = message(() => ({
  problems: repeated(1, NodeProblem),
  version: text(2),
  pid: int64(3),
  startedAtMs: int64(4),
  dataPath: text(5),
  networks: texts(6),
  callsInFlight: int64(7),
  departing: int64(8),
  cluster: text(9),
  shortcomings: texts(10),
  refusals: texts(11),
  state: text(12),
  registryTroubles: repeated(13, RegistryTrouble),
  configuration: texts(14),
  policies: text(15),
  policyDifferences: texts(16),
  services: text(17),
  serviceDifferences: texts(18),
  servicesFault: text(19),
  peers: nested(20, PeerCounts),
  peerTroubles: repeated(21, PeerTrouble),
}));
export type StatusResponse = MessageOf<typeof StatusResponse>;

/** `Interface` in the proto. */
export const NodeInterface = message(() => ({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
  hostIfname: text(4),
  ownLease: flag(5),
}));
export type NodeInterface = MessageOf<typeof NodeInterface>;

export const ListInterfacesRequest = message(() => ({}));
export type ListInterfacesRequest = MessageOf<typeof ListInterfacesRequest>;

export const ListInterfacesResponse = message(() => ({
  interfaces: repeated(1, NodeInterface),
}));
export type ListInterfacesResponse = MessageOf<typeof ListInterfacesResponse>;

export const MendRequest = message(() => ({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
  goneGeneration: int64(4),
}));
export type MendRequest = MessageOf<typeof MendRequest>;

export const MendResponse = message(() => ({ done: text(1) }));
export type MendResponse = MessageOf<typeof MendResponse>;
