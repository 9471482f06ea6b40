/**
 * The client of the Kubernetes API server, for the agent, a controller and the command line. Server and credentials
 * come from a pod's service account or a kubeconfig file; requests share one HTTP/2 connection; an informer keeps a
 * projection of all objects of a resource and reports each change.
 */
export type { ClusterAccess, TlsMaterial } from "./access.ts";
export { type ServiceAccountOptions, serviceAccountAccess } from "./access.ts";
export { ApiClient, bytesOf } from "./api-client.ts";
export { ApiError, isGone } from "./api-error.ts";
export { Connection } from "./connection.ts";
export { Informer, type InformerState, type InformerTimes, usualInformerTimes } from "./informer.ts";
export { InformerPool } from "./informer-pool.ts";
export { kubeconfigAccess, operatorAccess } from "./kubeconfig-access.ts";
export { KubernetesEvents } from "./kubernetes-events.ts";
export { listPages } from "./list-pages.ts";
export { decodeEnvelope, type FieldTable, objectMeta } from "./protobuf.ts";
export { type ApiObject, listIn, mapIn, mapsIn, type Resource, textIn } from "./resource.ts";
export { type Change, objectKey } from "./store.ts";
export { type ApiRequest, Patience } from "./transport.ts";
export { FrameCutter } from "./watch-frames.ts";
