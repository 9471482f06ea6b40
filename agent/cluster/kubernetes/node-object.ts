import { type ApiObject, listIn, mapIn } from "../../../shared/kubernetes/mod.ts";
import { type Cidr, type Family, type Ip, parseCidr } from "../../../shared/net/ip.ts";
import { parseNodeAddress } from "../../../shared/net/node-address.ts";
import { interfaceMac } from "../../../shared/net/parse-mac.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import { wrongNodeName } from "../../config/node-name.ts";
import { isPodSubnet } from "../../config/value-shapes.ts";
import type { ListedNode, NodeState } from "../node-registry.ts";

/** Of ours on a Node: what Kubernetes itself does not know of it. */
export const macAnnotation = "node.pipette.io/mac-address";

/**
 * A Node (API `v1`) as one of ours; `undefined` for what is none. Its uid stays empty: who a node is Kubernetes keeps
 * itself, by its name, and a machine that is made anew under it has the same pod CIDRs.
 */
export function nodeOf(object: unknown): ListedNode | undefined {
  const metadata = mapIn(object, "metadata");
  const name = metadata["name"];
  if (typeof name !== "string" || wrongNodeName(name) !== undefined) return undefined;
  const [spec, status] = [mapIn(object, "spec"), mapIn(object, "status")];
  const annotation = mapIn(metadata, "annotations")[macAnnotation];
  const mac = typeof annotation === "string" ? interfaceMac(annotation) : undefined;
  const cidrs = listIn(spec, "podCIDRs").length > 0 ? listIn(spec, "podCIDRs") : [spec["podCIDR"]];
  return {
    name,
    uid: "",
    addresses: onePerFamily(internalAddresses(status), (ip) => ip.family),
    ...(mac === undefined ? {} : { mac }),
    subnets: onePerFamily(cidrs.map(subnetOf).filter(isPodSubnet), (cidr) => cidr.ip.family),
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
