import { type Method, unary } from "../../../shared/proto/services.ts";
import {
  bytes,
  type Field,
  flag,
  int32,
  int64,
  type MessageOf,
  message,
  nested,
  repeated,
  text,
} from "../../../shared/proto/wire.ts";

/**
 * The messages of etcd's v3 API (etcd.io, "API reference") that we use, with the fields that we use, as tables like all
 * our other messages: nothing is generated, and the executable needs no `.proto` text beside it. Keys are text when we
 * send them; those that come may be anybody's, so they are bytes.
 */

/** `uint64` of no meaning but to tell one from another, in hexadecimal digits; never sent. */
const identifier = (number: number): Field<string> => ({
  number,
  wireType: 0,
  absent: () => "",
  write: () => undefined,
  read: (input) => {
    input.varint();
    return [input.high, input.low].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  },
});

export const ResponseHeader = message({ clusterId: identifier(1), revision: int64(3) });
export type ResponseHeader = MessageOf<typeof ResponseHeader>;

const KeyValue = message({
  key: bytes(1),
  modRevision: int64(3),
  /** How often the key was put since it came into being. */
  version: int64(4),
  value: bytes(5),
});
export type KeyValue = MessageOf<typeof KeyValue>;

export const RangeRequest = message({
  key: text(1),
  /** Everything from `key` to before this; "" for `key` alone. */
  rangeEnd: text(2),
  /** At most so many keys; 0 for all. */
  limit: int64(3),
  /** As it was at this revision; 0 for now. */
  revision: int64(4),
  keysOnly: flag(8),
});
export type RangeRequest = MessageOf<typeof RangeRequest>;

export const RangeResponse = message({
  header: nested(1, ResponseHeader),
  kvs: repeated(2, KeyValue),
  more: flag(3),
});
export type RangeResponse = MessageOf<typeof RangeResponse>;

const PutRequest = message({ key: text(1), value: text(2), lease: int64(3) });

const DeleteRangeRequest = message({ key: text(1) });

/** One of them. */
const RequestOp = message({
  range: nested(1, RangeRequest),
  put: nested(2, PutRequest),
  deleteRange: nested(3, DeleteRangeRequest),
});
export type RequestOp = MessageOf<typeof RequestOp>;

const ResponseOp = message({ range: nested(1, RangeResponse) });
export type ResponseOp = MessageOf<typeof ResponseOp>;

/** `Compare.CompareTarget`, and of `Compare.CompareResult` the only one in use, `EQUAL`: 0. */
export const CompareTarget = { modRevision: 2 } as const;

/** Equality of a key's revision of last change; 0 where the key is not there. */
const Compare = message({ target: int32(2), key: text(3), modRevision: int64(6) });
export type Compare = MessageOf<typeof Compare>;

export const TxnRequest = message({
  compare: repeated(1, Compare),
  success: repeated(2, RequestOp),
  failure: repeated(3, RequestOp),
});
export type TxnRequest = MessageOf<typeof TxnRequest>;

export const TxnResponse = message({
  header: nested(1, ResponseHeader),
  succeeded: flag(2),
  responses: repeated(3, ResponseOp),
});
export type TxnResponse = MessageOf<typeof TxnResponse>;

/** An identifier of 0 would have etcd choose one of 63 bits, which is no exact number here. */
export const LeaseGrantRequest = message({ ttl: int64(1), id: int64(2) });
export type LeaseGrantRequest = MessageOf<typeof LeaseGrantRequest>;

export const LeaseRequest = message({ id: int64(1) });
export type LeaseRequest = MessageOf<typeof LeaseRequest>;

/** `ttl` is what is left in seconds; 0 where there is no such lease any more, which is no error. */
export const LeaseResponse = message({ ttl: int64(3) });
export type LeaseResponse = MessageOf<typeof LeaseResponse>;

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

/** Of etcd's services, the methods that we call. */
export const etcdMethods = {
  range: unary("/etcdserverpb.KV/Range", RangeRequest, RangeResponse),
  txn: unary("/etcdserverpb.KV/Txn", TxnRequest, TxnResponse),
  leaseGrant: unary("/etcdserverpb.Lease/LeaseGrant", LeaseGrantRequest, LeaseResponse),
  /** A stream both ways that answers each request once: one request makes it a call like the others. */
  leaseKeepAlive: unary("/etcdserverpb.Lease/LeaseKeepAlive", LeaseRequest, LeaseResponse),
  leaseRevoke: unary("/etcdserverpb.Lease/LeaseRevoke", LeaseRequest, LeaseResponse),
} as const;

export const watchMethod: Method<WatchRequest, WatchResponse> = {
  path: "/etcdserverpb.Watch/Watch",
  request: WatchRequest,
  response: WatchResponse,
  responseStream: true,
};

/** Holds where the key was last changed at this revision; 0: where it is not there. */
export const unchanged = (key: string, modRevision: number): Compare => ({
  target: CompareTarget.modRevision,
  key,
  modRevision,
});

export const absent = (key: string): Compare => unchanged(key, 0);

const everything = { rangeEnd: "", limit: 0, revision: 0, keysOnly: false };

export const get = (key: string): RequestOp => ({ range: { ...everything, key } });

/** All keys that begin so. */
export const getAll = (prefix: string, options: { readonly keysOnly?: boolean } = {}): RequestOp => ({
  range: { ...everything, key: prefix, rangeEnd: endOf(prefix), ...options },
});

/** At most `limit` keys from `from` on that begin with `prefix`, as they were at a revision (0: now). */
export const page = (prefix: string, from: string, limit: number, revision: number): RangeRequest => ({
  ...everything,
  key: from,
  rangeEnd: endOf(prefix),
  limit,
  revision,
});

export const put = (key: string, value: string, lease = 0): RequestOp => ({ put: { key, value, lease } });

export const remove = (key: string): RequestOp => ({ deleteRange: { key } });

/** The first key behind all that begin with the prefix, which ends in an ASCII character. */
export const endOf = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

const decoder = new TextDecoder();

export const keyOf = (kv: Pick<KeyValue, "key">): string => decoder.decode(kv.key);
export const textOf = (kv: Pick<KeyValue, "value">): string => decoder.decode(kv.value);
