/**
 * HNS, the service of Windows that makes networks, endpoints and namespaces, spoken to through its two libraries. No
 * policy: the data path decides how to use it. In unit tests a fake service stands behind it, `test/fakes/hns/`.
 */
export type { HcnFeatures } from "./features.ts";
export type { Hcn, HcnDocument, HcnEndpoint, HcnLoadBalancer, HcnNetwork } from "./hcn.ts";
export { HcnError } from "./hcn-error.ts";
export { type HcnOptions, openHcn } from "./open-hcn.ts";
