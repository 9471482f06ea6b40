import { flag, int32, int64, type MessageCodec, message, repeated, text, texts } from "./wire.ts";

/**
 * The messages of `pipette.proto` around the service `Node`, proto3: what is absent reads as its zero value. What the
 * fields mean stands there. A test holds these tables against that text.
 */

export interface Attachment {
  readonly containerId: string;
  readonly ifname: string;
}

/** `Problem` in the proto. */
export interface NodeProblem {
  readonly code: number;
  readonly message: string;
  readonly advisory: boolean;
}

export interface GcRequest {
  readonly network: string;
  readonly valid: readonly Attachment[];
}

export interface GcResponse {
  readonly removed: readonly Attachment[];
  readonly failures: readonly string[];
  readonly leftOut: number;
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
  readonly cluster: string;
  readonly shortcomings: readonly string[];
  readonly refusals: readonly string[];
  readonly state: string;
  readonly registryTroubles: readonly RegistryTrouble[];
  readonly configuration: readonly string[];
}

export interface RegistryTrouble {
  readonly what: string;
  readonly reason: string;
  readonly sinceMs: number;
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

export interface MendRequest {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
  readonly goneGeneration: number;
}

export interface MendResponse {
  readonly done: string;
}

export const Attachment: MessageCodec<Attachment> = message<Attachment>({ containerId: text(1), ifname: text(2) });

export const NodeProblem: MessageCodec<NodeProblem> = message<NodeProblem>({
  code: int32(1),
  message: text(2),
  advisory: flag(3),
});

export const GcRequest: MessageCodec<GcRequest> = message<GcRequest>({
  network: text(1),
  valid: repeated(2, Attachment),
});

export const GcResponse: MessageCodec<GcResponse> = message<GcResponse>({
  removed: repeated(1, Attachment),
  failures: texts(2),
  leftOut: int64(3),
});

export const StatusRequest: MessageCodec<StatusRequest> = message<StatusRequest>({ network: text(1) });

export const RegistryTrouble: MessageCodec<RegistryTrouble> = message<RegistryTrouble>({
  what: text(1),
  reason: text(2),
  sinceMs: int64(3),
});

export const StatusResponse: MessageCodec<StatusResponse> = message<StatusResponse>({
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

export const MendRequest: MessageCodec<MendRequest> = message<MendRequest>({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
  goneGeneration: int64(4),
});

export const MendResponse: MessageCodec<MendResponse> = message<MendResponse>({ done: text(1) });
