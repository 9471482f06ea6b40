/** Who follows a node hears of each change of its policies: encoded once for all, in order, and never more than it takes. */
export {
  type ApiKind,
  addressGroupKind,
  appliedToGroupKind,
  type Encoding,
  egressGroupKind,
  networkPolicyKind,
  objectBytes,
  supportBundleCollectionKind,
} from "./api-kind.ts";
export type { WatchedResource } from "./watch-event.ts";
export { Watches } from "./watches.ts";
