import {
  type ApiObject,
  type FieldTable,
  listIn,
  mapIn,
  objectMeta,
  type Resource,
  textIn,
} from "../../../shared/kubernetes/mod.ts";
import { type Cidr, type Family, type Ip, parseCidr } from "../../../shared/net/ip.ts";
import { interfaceMac } from "../../../shared/net/mac.ts";
import { parseNodeAddress } from "../../../shared/net/node-address.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import { isNodeName, isPodSubnet } from "../../config/values.ts";
import { parseEncryption } from "../node-encryption.ts";
import type { ClusterNode, ListedNode, NodeState } from "../node-registry.ts";
import { sameNode } from "../node-text.ts";

/** The fields that are read of a Node (k8s.io/api/core/v1), without its images, which are most of it. */
const fields: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: ["spec", "message", { 1: ["podCIDR", "string"], 7: ["podCIDRs", "strings"] }],
  3: [
    "status",
    "message",
    {
      4: ["conditions", "messages", { 1: ["type", "string"], 2: ["status", "string"] }],
      5: ["addresses", "messages", { 1: ["type", "string"], 2: ["address", "string"] }],
    },
  ],
};

export interface KnownNode {
  readonly node: ListedNode;
  /** RFC 3339 in UTC with whole seconds, which sorts as text. */
  readonly created: string;
}

export const nodes: Resource<KnownNode> = {
  version: "v1",
  plural: "nodes",
  fields,
  project: (object) => {
    const node = nodeOf(object);
    return node === undefined
      ? undefined
      : { node, created: textIn(mapIn(object, "metadata"), "creationTimestamp") ?? "" };
  },
  // Most changes of a Node concern its conditions, which do not matter to peers.
  same: (a, b) => sameNode(plain(a.node), plain(b.node)),
};

/** The oldest first, since only the API server sets the time of creation. */
export function inOrder(found: Iterable<KnownNode>): ListedNode[] {
  const sorted = [...found].sort((a, b) => (a.created < b.created ? -1 : a.created > b.created ? 1 : 0));
  return sorted.map(({ node }) => node);
}

export const plain = ({ state: _, problem: __, ...node }: ListedNode): ClusterNode => node;

/** Our annotation on a Node: the MAC, which Kubernetes does not know. */
export const macAnnotation = "node.pipette.io/mac-address";
/** Another: how the node encrypts, with its public key. */
export const encryptionAnnotation = "node.pipette.io/encryption";

/**
 * A Node (API `v1`) as one of ours; `undefined` for what is none. Its uid stays empty: Kubernetes identifies a node by
 * its name, and a new machine of that name has the same pod CIDRs.
 */
export function nodeOf(object: unknown): ListedNode | undefined {
  const metadata = mapIn(object, "metadata");
  const name = metadata["name"];
  if (typeof name !== "string" || !isNodeName(name)) return undefined;
  const [spec, status] = [mapIn(object, "spec"), mapIn(object, "status")];
  const annotations = mapIn(metadata, "annotations");
  const annotation = annotations[macAnnotation];
  const mac = typeof annotation === "string" ? interfaceMac(annotation) : undefined;
  const secured = annotations[encryptionAnnotation];
  // A strange one counts as none: such a node is reached by nobody who encrypts, and is not reached in clear.
  const encryption = typeof secured === "string" ? parseEncryption(secured) : undefined;
  const cidrs = listIn(spec, "podCIDRs").length > 0 ? listIn(spec, "podCIDRs") : [spec["podCIDR"]];
  return {
    name,
    uid: "",
    addresses: onePerFamily(internalAddresses(status), (ip) => ip.family),
    ...(mac === undefined ? {} : { mac }),
    subnets: onePerFamily(cidrs.map(subnetOf).filter(isPodSubnet), (cidr) => cidr.ip.family),
    ...(encryption === undefined ? {} : { encryption }),
    state: stateOf(status),
  };
}

const subnetOf = (value: unknown): Cidr | undefined => (typeof value === "string" ? parseCidr(value) : undefined);

function internalAddresses(status: ApiObject): Ip[] {
  return listIn(status, "addresses").flatMap((entry) => {
    const { type, address } = isObject(entry) ? entry : {};
    return (type === "InternalIP" && typeof address === "string" ? parseNodeAddress(address) : undefined) ?? [];
  });
}

function stateOf(status: ApiObject): NodeState {
  const ready = listIn(status, "conditions").find((entry) => isObject(entry) && entry["type"] === "Ready");
  if (!isObject(ready)) return "unknown";
  return ready["status"] === "True" ? "ready" : "lost";
}

function onePerFamily<T>(values: readonly T[], familyOf: (value: T) => Family): T[] {
  return values.filter((value, i) => values.findIndex((other) => familyOf(other) === familyOf(value)) === i);
}
