import { type Cidr, formatCidr, formatIp, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { interfaceMac } from "../../shared/net/mac.ts";
import type { RegisteredNode } from "../../shared/proto/daemon-services.ts";
import { defaulted, list, object, optional, required, type Schema, text, textThat } from "../../shared/schema/mod.ts";
import { nodeAddress, nodeMac, nodeName, podSubnet } from "../config/values.ts";
import { encryptionRule, formatEncryption, parseEncryption } from "./node-encryption.ts";
import type { ClusterNode, ListedNode, NodeState } from "./node-registry.ts";

/** A node as it is written in files. */
export interface NodeText {
  readonly name: string;
  readonly uid?: string;
  readonly addresses: readonly string[];
  readonly mac?: string;
  readonly subnets: readonly string[];
  readonly encryption?: string;
}

const uid = textThat("1 to 64 letters, digits or dashes", (given) => /^[A-Za-z0-9-]{1,64}$/.test(given));

/** Reads a node out of a file. */
export const nodeSchema: Schema<ClusterNode> = object({
  name: required(nodeName, "of the node, as Kubernetes has it"),
  uid: defaulted(uid, "", "of the machine; one of another machine is refused", "any"),
  addresses: required(list(nodeAddress, 1, 2), "where the others reach it, one per family at most"),
  mac: optional(nodeMac, "of the interface with these addresses", "asked for on the link"),
  subnets: required(list(podSubnet, 1, 2), "of its pods, one per family at most"),
  encryption: optional(
    text(encryptionRule, parseEncryption),
    "how it [encrypts](encryption.md) what it sends: `ipsec`, or `wireguard:` and its public key",
    "not at all",
  ),
});

/** From a message, which the other end has validated. */
export function nodeOfText({ name, uid = "", addresses, mac, subnets, encryption = "" }: NodeText): ClusterNode {
  const hardware = mac === undefined ? undefined : interfaceMac(mac);
  const secured = parseEncryption(encryption);
  return {
    name,
    uid,
    addresses: addresses.map(parseIp).filter((ip): ip is Ip => ip !== undefined),
    ...(hardware === undefined ? {} : { mac: hardware }),
    subnets: subnets.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined),
    ...(secured === undefined ? {} : { encryption: secured }),
  };
}

export const textOfNode = ({ name, uid, addresses, mac, subnets, encryption }: ClusterNode): NodeText => ({
  name,
  ...(uid === "" ? {} : { uid }),
  addresses: addresses.map(formatIp),
  ...(mac === undefined ? {} : { mac }),
  subnets: subnets.map(formatCidr),
  ...(encryption === undefined ? {} : { encryption: formatEncryption(encryption) }),
});

/** Whether two records say the same. */
export const sameNode = (a: ClusterNode | undefined, b: ClusterNode | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && JSON.stringify(textOfNode(a)) === JSON.stringify(textOfNode(b)));

/** A node as the agent tells it, and back. */
export function messageOfNode({ state, problem = "", ...node }: ListedNode): RegisteredNode {
  return { uid: "", mac: "", encryption: "", ...textOfNode(node), state, problem };
}

export function nodeOfMessage({ state, problem, uid, mac, ...text }: RegisteredNode): ListedNode {
  const node = nodeOfText({ ...text, uid, ...(mac === "" ? {} : { mac }) });
  return { ...node, state: isState(state) ? state : "unknown", ...(problem === "" ? {} : { problem }) };
}

const isState = (text: string): text is NodeState => text === "ready" || text === "lost";
