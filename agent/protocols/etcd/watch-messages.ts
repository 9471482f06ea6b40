import {
  bytes,
  flag,
  int32,
  int64,
  type MessageOf,
  message,
  nested,
  repeated,
  text,
} from "../../../shared/proto/wire.ts";
import { ResponseHeader } from "./messages.ts";

/** The messages of etcd's service `Watch`, as in `messages.ts`. */

const WatchCreateRequest = message({
  key: text(1),
  rangeEnd: text(2),
  /** The first revision whose events are wanted. */
  startRevision: int64(3),
});
export type WatchCreateRequest = MessageOf<typeof WatchCreateRequest>;

const Nothing = message({});

/** One of them. */
export const WatchRequest = message({
  create: nested(1, WatchCreateRequest),
  progress: nested(3, Nothing),
});
export type WatchRequest = MessageOf<typeof WatchRequest>;

const WatchEvent = message({
  /** `Event.EventType`: 0 is PUT, 1 is DELETE. */
  type: int32(1),
  kv: nested(2, message({ key: bytes(1), modRevision: int64(3), value: bytes(5) })),
});
export type WatchEvent = MessageOf<typeof WatchEvent>;

export const WatchResponse = message({
  header: nested(1, ResponseHeader),
  created: flag(3),
  canceled: flag(4),
  /** Where the wanted start is gone: the oldest revision that can be watched. */
  compactRevision: int64(5),
  cancelReason: text(6),
  events: repeated(11, WatchEvent),
});
export type WatchResponse = MessageOf<typeof WatchResponse>;
