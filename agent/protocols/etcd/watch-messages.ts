import {
  bytes,
  flag,
  int32,
  int64,
  type MessageCodec,
  message,
  nested,
  repeated,
  text,
} from "../../../shared/proto/wire.ts";
import { ResponseHeader } from "./messages.ts";

/** The messages of etcd's service `Watch`, as in `messages.ts`. */

export interface WatchCreateRequest {
  readonly key: string;
  readonly rangeEnd: string;
  /** The first revision whose events are wanted. */
  readonly startRevision: number;
}
const WatchCreateRequest: MessageCodec<WatchCreateRequest> = message({
  key: text(1),
  rangeEnd: text(2),
  startRevision: int64(3),
});

const Nothing: MessageCodec<object> = message({});

/** One of them. */
export interface WatchRequest {
  readonly create?: WatchCreateRequest | undefined;
  readonly progress?: object | undefined;
}
export const WatchRequest: MessageCodec<WatchRequest> = message<WatchRequest>({
  create: nested(1, WatchCreateRequest),
  progress: nested(3, Nothing),
});

export interface WatchEvent {
  /** `Event.EventType`: 0 is PUT, 1 is DELETE. */
  readonly type: number;
  readonly kv: { readonly key: Uint8Array; readonly modRevision: number; readonly value: Uint8Array } | undefined;
}
const WatchEvent: MessageCodec<WatchEvent> = message({
  type: int32(1),
  kv: nested(2, message({ key: bytes(1), modRevision: int64(3), value: bytes(5) })),
});

export interface WatchResponse {
  readonly header: ResponseHeader | undefined;
  readonly created: boolean;
  readonly canceled: boolean;
  /** Where the wanted start is gone: the oldest revision that can be watched. */
  readonly compactRevision: number;
  readonly cancelReason: string;
  readonly events: readonly WatchEvent[];
}
export const WatchResponse: MessageCodec<WatchResponse> = message({
  header: nested(1, ResponseHeader),
  created: flag(3),
  canceled: flag(4),
  compactRevision: int64(5),
  cancelReason: text(6),
  events: repeated(11, WatchEvent),
});
