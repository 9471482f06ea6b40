import type { Hex } from "./parse.ts";

/** Addresses whose digits begin so. */
export interface Prefix {
  readonly family: 4 | 6;
  readonly digits: Hex;
}

export const isWithin = (address: Hex, { family, digits }: Prefix): boolean =>
  address.length === (family === 4 ? 8 : 32) && address.startsWith(digits);

export interface Pod {
  readonly name: string;
  /** Of its node. */
  readonly node: string;
  readonly project: string;
  readonly mac: Hex;
  readonly addresses: readonly Hex[];
  readonly linkLocal: Hex;
}

export interface WorldNode {
  readonly name: string;
  readonly addresses: readonly Hex[];
  /** On the link between the nodes. */
  readonly mac: Hex;
  /** Where pods meet the node's kernel: the switch's own port, or the kernel bridge itself. */
  /** Its interface to its pods. */
  readonly gateway: {
    readonly ifname: string;
    readonly mac: Hex;
    readonly addresses: readonly Hex[];
    readonly linkLocal: Hex;
  };
  /** That its pods' addresses are of. */
  readonly subnets: readonly Prefix[];
  readonly onSameLink: boolean;
}

/** Every datagram for its address goes to its endpoint, whatever the port. */
export interface Service {
  readonly name: string;
  readonly address: Hex;
  readonly endpoint: { readonly address: Hex; readonly port: number };
}

/** Everything that the model needs to know of where a frame is sent: facts, no rules. */
export interface World {
  readonly dataPath: "bridge" | "ovs";
  readonly mode: "bridge" | "encap" | "noEncap" | "hybrid" | "networkPolicyOnly";
  /** `none` where no tunnel is configured. */
  readonly tunnel: "geneve" | "vxlan" | "gre" | "stt" | "none";
  /** Whether pods of different projects must not reach each other. */
  readonly projectsApart: boolean;
  /** The first is the attacker's. */
  readonly nodes: readonly [WorldNode, ...WorldNode[]];
  /** The first is the attacker. */
  readonly pods: readonly [Pod, ...Pod[]];
  /** All nodes' subnets are of these; what goes there keeps its source. */
  readonly clusterNetworks: readonly Prefix[];
  /** That the attacker's node translates in its kernel, as kube-proxy does. */
  readonly services: readonly Service[];
  /** Hosts beyond the nodes. */
  readonly external: readonly Hex[];
  /** Interfaces that are somebody's, besides: routers of the link, members of the registry. */
  readonly others: readonly { readonly mac?: Hex; readonly address: Hex }[];
}

/**
 * Where frames are looked for. `pod`: its interface. `gateway`: the node's interface to its pods. `local`: the node's
 * interface to its own network. `wire`: what the node sends there.
 */
export interface Place {
  readonly role: "pod" | "gateway" | "local" | "wire";
  readonly node: string;
  /** Of the pod. */
  readonly pod?: string;
}

export const nameOf = ({ role, node, pod }: Place): string =>
  pod === undefined ? `${node} ${role}` : `${node}/${pod}`;

/** The MAC that nobody has: neighbours that are behind the switch have it in the eyes of kernels. */
export const virtualMac: Hex = "aabbccddeeff";
