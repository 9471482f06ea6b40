/**
 * ClusterIP services: a source that says which there are (`service.ts`; today a file), the flows and the group of one
 * (`service-flows.ts`), the keeper that brings the switch from one state of the source to the next, and the node's own
 * way to services.
 */
export type { Endpoint, Service, ServiceSource } from "./service.ts";
export { openServiceFile } from "./service-file.ts";
export { ServiceKeeper } from "./service-keeper.ts";
export { serviceRoutes } from "./service-routes.ts";
