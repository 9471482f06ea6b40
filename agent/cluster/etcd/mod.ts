/** Nodes and tenants in etcd (v3 API): subnets and VNIDs are claimed by compare-and-swap, nothing is ever locked. */
export { createEtcdRegistry } from "./etcd-registry.ts";
export type { EtcdNodeRegistry, EtcdRegistryOptions } from "./options.ts";
