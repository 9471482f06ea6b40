/**
 * What network policies mean: NetworkPolicies, Pods and Namespaces as far as they matter to them, read so that what is
 * not understood opens nothing, and the verdict on a connection with the rules that decide it.
 */
export {
  type Cluster,
  type Endpoint,
  evaluate,
  isAmong,
  judge,
  type Match,
  type NearMatch,
  nearMatches,
  type Question,
  type Side,
  type Traffic,
  type Verdict,
} from "./evaluate.ts";
export {
  everything,
  type Labels,
  labelIn,
  readSelector,
  type Selector,
  selects,
} from "./label-selector.ts";
export {
  type BlockPeer,
  type Direction,
  isInBlock,
  type NetworkPolicy,
  networkPolicies,
  type Peer,
  type PodPeer,
  type Port,
  type Rule,
  readPolicy,
} from "./network-policy.ts";
export {
  isSubject,
  type NamedPort,
  type Namespace,
  namespaces,
  type Pod,
  pods,
  readPod,
  sameIps,
  samePorts,
} from "./pod.ts";
