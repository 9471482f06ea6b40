import { Attachment } from "./pipette-messages.ts";
import { bytes, flag, int64, type MessageOf, message, nested, repeated, text } from "./wire.ts";

/** The messages of `pipette.proto` around the service `Ipam`, as in `pipette-messages.ts`. */

/** `Lease` in the proto. */
export const LeaseMessage = message({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
  address: text(4),
  gateway: text(5),
  state: text(6),
  podNamespace: text(7),
  podName: text(8),
  podUid: text(9),
  generation: int64(10),
  allocatedAtMs: int64(11),
  releasedAtMs: int64(12),
});
export type LeaseMessage = MessageOf<typeof LeaseMessage>;

export const AllocateRequest = message({
  containerId: text(1),
  ifname: text(2),
  args: text(3),
  networkConfiguration: bytes(4),
});
export type AllocateRequest = MessageOf<typeof AllocateRequest>;

export const AllocateResponse = message({
  cniResult: bytes(1),
  leases: repeated(2, LeaseMessage),
});
export type AllocateResponse = MessageOf<typeof AllocateResponse>;

/** One attachment: `ReleaseRequest` and `GetRequest` in the proto. */
export const OwnerRequest = message({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
});
export type OwnerRequest = MessageOf<typeof OwnerRequest>;

export const ReleaseResponse = message({
  released: repeated(1, LeaseMessage),
});
export type ReleaseResponse = MessageOf<typeof ReleaseResponse>;

export const GetResponse = message({ leases: repeated(1, LeaseMessage) });
export type GetResponse = MessageOf<typeof GetResponse>;

export const ListRequest = message({ network: text(1) });
export type ListRequest = MessageOf<typeof ListRequest>;

/** A message of its own because its presence counts. */
export const Attachments = message({ attachments: repeated(1, Attachment) });
export type Attachments = MessageOf<typeof Attachments>;

export const CollectRequest = message({
  network: text(1),
  valid: nested(2, Attachments),
});
export type CollectRequest = MessageOf<typeof CollectRequest>;

export const CheckRequest = message({});
export type CheckRequest = MessageOf<typeof CheckRequest>;

/** `Finding` in the proto. */
export const FindingMessage = message({
  severity: text(1),
  code: text(2),
  network: text(3),
  what: text(4),
  why: text(5),
  todo: text(6),
  repairable: flag(7),
});
export type FindingMessage = MessageOf<typeof FindingMessage>;

export const CheckResponse = message({
  findings: repeated(1, FindingMessage),
});
export type CheckResponse = MessageOf<typeof CheckResponse>;

export const StatsRequest = message({ network: text(1) });
export type StatsRequest = MessageOf<typeof StatsRequest>;

export const RangeStats = message({
  range: text(1),
  total: text(2),
  used: int64(3),
  cooling: int64(4),
  free: text(5),
});
export type RangeStats = MessageOf<typeof RangeStats>;

export const NetworkStats = message({
  network: text(1),
  allocated: int64(2),
  releasing: int64(3),
  cooling: int64(4),
  ranges: repeated(5, RangeStats),
});
export type NetworkStats = MessageOf<typeof NetworkStats>;

export const StatsResponse = message({
  networks: repeated(1, NetworkStats),
});
export type StatsResponse = MessageOf<typeof StatsResponse>;
