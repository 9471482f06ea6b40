import {
  bytes,
  type Field,
  flag,
  int32,
  int64,
  type MessageCodec,
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

export interface ResponseHeader {
  readonly clusterId: string;
  readonly revision: number;
}
export const ResponseHeader: MessageCodec<ResponseHeader> = message({ clusterId: identifier(1), revision: int64(3) });

export interface KeyValue {
  readonly key: Uint8Array;
  readonly modRevision: number;
  /** How often the key was put since it came into being. */
  readonly version: number;
  readonly value: Uint8Array;
}
const KeyValue: MessageCodec<KeyValue> = message({
  key: bytes(1),
  modRevision: int64(3),
  version: int64(4),
  value: bytes(5),
});

export interface RangeRequest {
  readonly key: string;
  /** Everything from `key` to before this; "" for `key` alone. */
  readonly rangeEnd: string;
  /** At most so many keys; 0 for all. */
  readonly limit: number;
  /** As it was at this revision; 0 for now. */
  readonly revision: number;
  readonly keysOnly: boolean;
}
export const RangeRequest: MessageCodec<RangeRequest> = message({
  key: text(1),
  rangeEnd: text(2),
  limit: int64(3),
  revision: int64(4),
  keysOnly: flag(8),
});

export interface RangeResponse {
  readonly header: ResponseHeader | undefined;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
}
export const RangeResponse: MessageCodec<RangeResponse> = message({
  header: nested(1, ResponseHeader),
  kvs: repeated(2, KeyValue),
  more: flag(3),
});

interface PutRequest {
  readonly key: string;
  readonly value: string;
  readonly lease: number;
}
const PutRequest: MessageCodec<PutRequest> = message({ key: text(1), value: text(2), lease: int64(3) });

interface DeleteRangeRequest {
  readonly key: string;
}
const DeleteRangeRequest: MessageCodec<DeleteRangeRequest> = message({ key: text(1) });

/** One of them. */
export interface RequestOp {
  readonly range?: RangeRequest | undefined;
  readonly put?: PutRequest | undefined;
  readonly deleteRange?: DeleteRangeRequest | undefined;
}
const RequestOp: MessageCodec<RequestOp> = message<RequestOp>({
  range: nested(1, RangeRequest),
  put: nested(2, PutRequest),
  deleteRange: nested(3, DeleteRangeRequest),
});

export interface ResponseOp {
  readonly range: RangeResponse | undefined;
}
const ResponseOp: MessageCodec<ResponseOp> = message({ range: nested(1, RangeResponse) });

/** `Compare.CompareTarget`, and of `Compare.CompareResult` the only one in use, `EQUAL`: 0. */
export const CompareTarget = { modRevision: 2 } as const;

/** Equality of a key's revision of last change; 0 where the key is not there. */
export interface Compare {
  readonly target: number;
  readonly key: string;
  readonly modRevision: number;
}
const Compare: MessageCodec<Compare> = message({ target: int32(2), key: text(3), modRevision: int64(6) });

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}
export const TxnRequest: MessageCodec<TxnRequest> = message({
  compare: repeated(1, Compare),
  success: repeated(2, RequestOp),
  failure: repeated(3, RequestOp),
});

export interface TxnResponse {
  readonly header: ResponseHeader | undefined;
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}
export const TxnResponse: MessageCodec<TxnResponse> = message({
  header: nested(1, ResponseHeader),
  succeeded: flag(2),
  responses: repeated(3, ResponseOp),
});

/** An identifier of 0 would have etcd choose one of 63 bits, which is no exact number here. */
export interface LeaseGrantRequest {
  readonly ttl: number;
  readonly id: number;
}
export const LeaseGrantRequest: MessageCodec<LeaseGrantRequest> = message({ ttl: int64(1), id: int64(2) });

export interface LeaseRequest {
  readonly id: number;
}
export const LeaseRequest: MessageCodec<LeaseRequest> = message({ id: int64(1) });

/** `ttl` is what is left in seconds; 0 where there is no such lease any more, which is no error. */
export interface LeaseResponse {
  readonly ttl: number;
}
export const LeaseResponse: MessageCodec<LeaseResponse> = message({ ttl: int64(3) });
