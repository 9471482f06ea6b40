/**
 * HNS, the service of Windows that makes networks, endpoints and namespaces, spoken to through its two libraries.
 * No policy: what to make of it is the data path's. In unit tests `hcn-in-memory.ts` takes its place.
 */
export { parseGuid } from "./documents.ts";
export type { Hcn, HcnDocument, HcnEndpoint, HcnModify, HcnNamespace, HcnNetwork } from "./hcn.ts";
export { HcnError } from "./hcn-error.ts";
export { type HcnOptions, openHcn } from "./open-hcn.ts";
