import { type Cidr, formatCidr, formatIp, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { interfaceMac } from "../../shared/net/mac.ts";
import type { RegisteredNode } from "../../shared/proto/daemon-services.ts";
import { nodeNameRule, wrongNodeName } from "../config/node-name.ts";
import { nodeAddress, nodeMac, podSubnet } from "../config/value-shapes.ts";
import type { Shape } from "../config/yaml-shape.ts";
import type { ClusterNode, ListedNode, NodeState } from "./node-registry.ts";

/** A node as it stands in files. */
export interface NodeText {
  readonly name: string;
  readonly uid?: string;
  readonly addresses: readonly string[];
  readonly mac?: string;
  readonly subnets: readonly string[];
}

export const nodeTextShape: Shape = {
  t: "map",
  required: ["name", "addresses", "subnets"],
  keys: {
    name: { t: "string", wanted: nodeNameRule, wrong: wrongNodeName },
    uid: {
      t: "string",
      wanted: "1 to 64 letters, digits or dashes",
      wrong: (text) => (/^[A-Za-z0-9-]{1,64}$/.test(text) ? undefined : "another"),
    },
    addresses: { t: "list", of: nodeAddress, least: 1, most: 2 },
    mac: nodeMac,
    subnets: { t: "list", of: podSubnet, least: 1, most: 2 },
  },
};

/** What the shape let through. */
export function nodeOfText({ name, uid = "", addresses, mac, subnets }: NodeText): ClusterNode {
  const hardware = mac === undefined ? undefined : interfaceMac(mac);
  return {
    name,
    uid,
    addresses: addresses.map(parseIp).filter((ip): ip is Ip => ip !== undefined),
    ...(hardware === undefined ? {} : { mac: hardware }),
    subnets: subnets.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined),
  };
}

export const textOfNode = ({ name, uid, addresses, mac, subnets }: ClusterNode): NodeText => ({
  name,
  ...(uid === "" ? {} : { uid }),
  addresses: addresses.map(formatIp),
  ...(mac === undefined ? {} : { mac }),
  subnets: subnets.map(formatCidr),
});

/** Whether two records say the same. */
export const sameNode = (a: ClusterNode | undefined, b: ClusterNode | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && JSON.stringify(textOfNode(a)) === JSON.stringify(textOfNode(b)));

/** A node as the agent tells it, and back. */
export function messageOfNode({ state, problem = "", ...node }: ListedNode): RegisteredNode {
  return { uid: "", mac: "", ...textOfNode(node), state, problem };
}

export function nodeOfMessage({ state, problem, uid, mac, ...text }: RegisteredNode): ListedNode {
  const node = nodeOfText({ ...text, uid, ...(mac === "" ? {} : { mac }) });
  return { ...node, state: isState(state) ? state : "unknown", ...(problem === "" ? {} : { problem }) };
}

const isState = (text: string): text is NodeState => text === "ready" || text === "lost";
