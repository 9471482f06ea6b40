import { bytes, flag, int32, int64, type MessageCodec, message, repeated, text, texts } from "./wire.ts";

/**
 * The messages of `pipette.proto`, proto3: what is absent reads as its zero value. What the fields
 * mean stands there. A test holds these tables against that text.
 */

export interface Attachment {
  readonly containerId: string;
  readonly ifname: string;
}

/** `Problem` in the proto. */
export interface NodeProblem {
  readonly code: number;
  readonly message: string;
}

export interface GcRequest {
  readonly network: string;
  readonly valid: readonly Attachment[];
}

export interface GcResponse {
  readonly removed: readonly Attachment[];
  readonly failures: readonly string[];
}

export interface StatusRequest {
  readonly network: string;
}

export interface StatusResponse {
  readonly problems: readonly NodeProblem[];
  readonly version: string;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly dataPath: string;
  readonly networks: readonly string[];
  readonly callsInFlight: number;
  readonly departing: number;
}

/** `Interface` in the proto. */
export interface NodeInterface {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
  readonly hostIfname: string;
  readonly ownLease: boolean;
}

export type ListInterfacesRequest = Readonly<Record<never, never>>;

export interface ListInterfacesResponse {
  readonly interfaces: readonly NodeInterface[];
}

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

export const Attachment: MessageCodec<Attachment> = message<Attachment>({ containerId: text(1), ifname: text(2) });

export const NodeProblem: MessageCodec<NodeProblem> = message<NodeProblem>({ code: int32(1), message: text(2) });

export const GcRequest: MessageCodec<GcRequest> = message<GcRequest>({
  network: text(1),
  valid: repeated(2, Attachment),
});

export const GcResponse: MessageCodec<GcResponse> = message<GcResponse>({
  removed: repeated(1, Attachment),
  failures: texts(2),
});

export const StatusRequest: MessageCodec<StatusRequest> = message<StatusRequest>({ network: text(1) });

export const StatusResponse: MessageCodec<StatusResponse> = message<StatusResponse>({
  problems: repeated(1, NodeProblem),
  version: text(2),
  pid: int64(3),
  startedAtMs: int64(4),
  dataPath: text(5),
  networks: texts(6),
  callsInFlight: int64(7),
  departing: int64(8),
});

export const NodeInterface: MessageCodec<NodeInterface> = message<NodeInterface>({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
  hostIfname: text(4),
  ownLease: flag(5),
});

export const ListInterfacesRequest: MessageCodec<ListInterfacesRequest> = message<ListInterfacesRequest>({});

export const ListInterfacesResponse: MessageCodec<ListInterfacesResponse> = message<ListInterfacesResponse>({
  interfaces: repeated(1, NodeInterface),
});

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
