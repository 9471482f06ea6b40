import { type Method, unary } from "../../../shared/proto/services.ts";
import {
  LeaseGrantRequest,
  LeaseRequest,
  LeaseResponse,
  RangeRequest,
  RangeResponse,
  TxnRequest,
  TxnResponse,
} from "./messages.ts";
import { WatchRequest, WatchResponse } from "./watch-messages.ts";

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
