/**
 * The API server of Kubernetes: one client for all that asks it, in the agent, in a controller and on the command line.
 * Who asks where comes from a pod's service account or a kubeconfig file; requests share one connection over HTTP/2;
 * an informer keeps what is wanted of all objects of a resource, and tells of each change.
 */
export type { ClusterAccess, TlsMaterial } from "./access.ts";
export { type ServiceAccountOptions, serviceAccountAccess } from "./access.ts";
export { ApiClient } from "./api-client.ts";
export { ApiError, isGone } from "./api-error.ts";
export { Connection } from "./connection.ts";
export { Informer, type InformerState, type InformerTimes, usualInformerTimes } from "./informer.ts";
export { InformerPool } from "./informer-pool.ts";
export { kubeconfigAccess } from "./kubeconfig-access.ts";
export { listPages } from "./list-pages.ts";
export { type FieldTable, objectMeta } from "./protobuf.ts";
export { type ApiObject, listIn, mapIn, type Resource, textIn } from "./resource.ts";
export { type Change, objectKey } from "./store.ts";
