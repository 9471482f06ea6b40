/**
 * etcd's v3 API over grpc-js, without policy: calls at one member after the other, transactions, and watches. What is
 * kept there is the registry's (`agent/cluster/etcd`).
 */
export { parseEndpoints } from "./connection.ts";
export { EtcdClient, retried, type Transaction } from "./etcd-client.ts";
export { EtcdError } from "./etcd-error.ts";
export { etcdLimits } from "./etcd-limits.ts";
export {
  absent,
  type Compare,
  endOf,
  etcdMethods,
  get,
  getAll,
  type KeyValue,
  keyOf,
  page,
  put,
  type RequestOp,
  type ResponseHeader,
  remove,
  textOf,
  unchanged,
  type WatchResponse,
} from "./messages.ts";
export { watch } from "./watch.ts";
