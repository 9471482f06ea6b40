import { Attachment } from "./pipette-messages.ts";
import { bytes, flag, int64, type MessageCodec, message, nested, repeated, text } from "./wire.ts";

/** The messages of `pipette.proto` around the service `Ipam`, as in `pipette-messages.ts`. */

/** `Lease` in the proto. */
export interface LeaseMessage {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
  readonly address: string;
  readonly gateway: string;
  readonly state: string;
  readonly podNamespace: string;
  readonly podName: string;
  readonly podUid: string;
  readonly generation: number;
  readonly allocatedAtMs: number;
  readonly releasedAtMs: number;
}

export interface AllocateRequest {
  readonly containerId: string;
  readonly ifname: string;
  readonly args: string;
  readonly networkConfiguration: Uint8Array;
}

export interface AllocateResponse {
  readonly cniResult: Uint8Array;
  readonly leases: readonly LeaseMessage[];
}

/** One attachment: `ReleaseRequest` and `GetRequest` in the proto. */
export interface OwnerRequest {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
}

export interface ReleaseResponse {
  readonly released: readonly LeaseMessage[];
}

export interface GetResponse {
  readonly leases: readonly LeaseMessage[];
}

export interface ListRequest {
  readonly network: string;
}

/** A message of its own because its presence counts. */
export interface Attachments {
  readonly attachments: readonly Attachment[];
}

export interface CollectRequest {
  readonly network: string;
  readonly valid?: Attachments | undefined;
}

export type CheckRequest = Readonly<Record<never, never>>;

/** `Finding` in the proto. */
export interface FindingMessage {
  readonly severity: string;
  readonly code: string;
  readonly network: string;
  readonly what: string;
  readonly why: string;
  readonly todo: string;
  readonly repairable: boolean;
}

export interface CheckResponse {
  readonly findings: readonly FindingMessage[];
}

export interface StatsRequest {
  readonly network: string;
}

export interface StatsResponse {
  readonly networks: readonly NetworkStats[];
}

export interface NetworkStats {
  readonly network: string;
  readonly allocated: number;
  readonly releasing: number;
  readonly cooling: number;
  readonly ranges: readonly RangeStats[];
}

export interface RangeStats {
  readonly range: string;
  readonly total: string;
  readonly used: number;
  readonly cooling: number;
  readonly free: string;
}

export const LeaseMessage: MessageCodec<LeaseMessage> = message<LeaseMessage>({
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

export const AllocateRequest: MessageCodec<AllocateRequest> = message<AllocateRequest>({
  containerId: text(1),
  ifname: text(2),
  args: text(3),
  networkConfiguration: bytes(4),
});

export const AllocateResponse: MessageCodec<AllocateResponse> = message<AllocateResponse>({
  cniResult: bytes(1),
  leases: repeated(2, LeaseMessage),
});

export const OwnerRequest: MessageCodec<OwnerRequest> = message<OwnerRequest>({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
});

export const ReleaseResponse: MessageCodec<ReleaseResponse> = message<ReleaseResponse>({
  released: repeated(1, LeaseMessage),
});

export const GetResponse: MessageCodec<GetResponse> = message<GetResponse>({ leases: repeated(1, LeaseMessage) });

export const ListRequest: MessageCodec<ListRequest> = message<ListRequest>({ network: text(1) });

export const Attachments: MessageCodec<Attachments> = message<Attachments>({ attachments: repeated(1, Attachment) });

export const CollectRequest: MessageCodec<CollectRequest> = message<CollectRequest>({
  network: text(1),
  valid: nested(2, Attachments),
});

export const CheckRequest: MessageCodec<CheckRequest> = message<CheckRequest>({});

export const FindingMessage: MessageCodec<FindingMessage> = message<FindingMessage>({
  severity: text(1),
  code: text(2),
  network: text(3),
  what: text(4),
  why: text(5),
  todo: text(6),
  repairable: flag(7),
});

export const CheckResponse: MessageCodec<CheckResponse> = message<CheckResponse>({
  findings: repeated(1, FindingMessage),
});

export const StatsRequest: MessageCodec<StatsRequest> = message<StatsRequest>({ network: text(1) });

export const RangeStats: MessageCodec<RangeStats> = message<RangeStats>({
  range: text(1),
  total: text(2),
  used: int64(3),
  cooling: int64(4),
  free: text(5),
});

export const NetworkStats: MessageCodec<NetworkStats> = message<NetworkStats>({
  network: text(1),
  allocated: int64(2),
  releasing: int64(3),
  cooling: int64(4),
  ranges: repeated(5, RangeStats),
});

export const StatsResponse: MessageCodec<StatsResponse> = message<StatsResponse>({
  networks: repeated(1, NetworkStats),
});
