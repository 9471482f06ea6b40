import {
  type ApiObject,
  type FieldTable,
  listIn,
  mapIn,
  mapsIn,
  objectMeta,
  type Resource,
  textIn,
} from "../kubernetes/mod.ts";
import { bitsOf, type Cidr, contains, firstOf, parseCidr, parseIp } from "../net/ip.ts";
import { everything, readSelector, type Selector } from "./label-selector.ts";

export type Direction = "ingress" | "egress";

/** A NetworkPolicy (networking.k8s.io/v1), read so that whatever is not understood opens nothing. */
export interface NetworkPolicy {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  /** The pods of its namespace that it applies to. */
  readonly pods: Selector;
  /**
   * Its rules in a direction; absent where it does not isolate in that direction. Only `policyTypes` says so: rules of
   * a direction that is not listed there count for nothing.
   */
  readonly ingress?: readonly Rule[];
  readonly egress?: readonly Rule[];
  /** What was not understood, and therefore allows nothing. */
  readonly problems: readonly string[];
}

export interface Rule {
  /** Absent: anybody, also outside of the cluster. */
  readonly peers?: readonly Peer[];
  /** Absent: every port of every protocol. */
  readonly ports?: readonly Port[];
}

export type Peer = PodPeer | BlockPeer;

export interface PodPeer {
  readonly t: "pods";
  /** Absent: the policy's own namespace. */
  readonly namespaces?: Selector;
  /** Absent: all pods there. */
  readonly pods?: Selector;
}

export interface BlockPeer {
  readonly t: "block";
  /** Without host bits. */
  readonly cidr: Cidr;
  readonly except: readonly Cidr[];
}

export type Protocol = (typeof protocols)[number];
const protocols = ["TCP", "UDP", "SCTP"] as const;

export interface Port {
  readonly protocol: Protocol;
  /** A text is the name of a container's port. Absent: every port of the protocol. */
  readonly port?: number | string;
  /** The last one of a range. */
  readonly endPort?: number;
}

const labelSelector: FieldTable = {
  1: ["matchLabels", "map"],
  2: ["matchExpressions", "messages", { 1: ["key", "string"], 2: ["operator", "string"], 3: ["values", "strings"] }],
};

const peer: FieldTable = {
  1: ["podSelector", "message", labelSelector],
  2: ["namespaceSelector", "message", labelSelector],
  3: ["ipBlock", "message", { 1: ["cidr", "string"], 2: ["except", "strings"] }],
};

const rule = (peers: "from" | "to"): FieldTable => ({
  1: ["ports", "messages", { 1: ["protocol", "string"], 2: ["port", "intOrString"], 3: ["endPort", "integer"] }],
  2: [peers, "messages", peer],
});

export const networkPolicies: Resource<NetworkPolicy> = {
  group: "networking.k8s.io",
  version: "v1",
  plural: "networkpolicies",
  fields: {
    1: ["metadata", "message", { ...objectMeta, 7: ["generation", "integer"] }],
    2: [
      "spec",
      "message",
      {
        1: ["podSelector", "message", labelSelector],
        2: ["ingress", "messages", rule("from")],
        3: ["egress", "messages", rule("to")],
        4: ["policyTypes", "strings"],
      },
    ],
  },
  project: readPolicy,
  // The API server counts a generation for each change of the spec.
  same: (a, b) => a.generation === b.generation && a.generation > 0,
};

/** Reads a NetworkPolicy of the API server, or of a file, which may leave out what the API server fills in. */
export function readPolicy(object: ApiObject): NetworkPolicy | undefined {
  const [metadata, spec] = [mapIn(object, "metadata"), mapIn(object, "spec")];
  const [namespace, name] = [textIn(metadata, "namespace"), textIn(metadata, "name")];
  if (namespace === undefined || name === undefined) return undefined;
  const problems: string[] = [];
  const generation = metadata["generation"];
  const pods = readSelector(mapIn(spec, "podSelector"));
  if (pods === undefined) problems.push("spec.podSelector");
  const rulesOf = (direction: Direction): readonly Rule[] =>
    // Whom the policy was meant for nobody knows: all pods of its namespace are isolated, and nothing is allowed.
    pods === undefined ? [] : mapsIn(spec, direction).map((each, i) => readRule(each, direction, i, problems));
  const isolated = directionsOf(spec, problems);
  return {
    namespace,
    name,
    uid: textIn(metadata, "uid") ?? "",
    generation: typeof generation === "number" ? generation : 0,
    pods: pods ?? everything,
    ...(isolated.has("ingress") ? { ingress: rulesOf("ingress") } : {}),
    ...(isolated.has("egress") ? { egress: rulesOf("egress") } : {}),
    problems,
  };
}

/** What the API server fills in where `policyTypes` is left out: ingress always, egress where there are such rules. */
function directionsOf(spec: ApiObject, problems: string[]): ReadonlySet<Direction> {
  const types = listIn(spec, "policyTypes");
  if (types.length === 0) return new Set(listIn(spec, "egress").length > 0 ? ["ingress", "egress"] : ["ingress"]);
  const found = new Set<Direction>();
  for (const [i, type] of types.entries())
    if (type === "Ingress") found.add("ingress");
    else if (type === "Egress") found.add("egress");
    else problems.push(`spec.policyTypes[${i}]`);
  return found;
}

function readRule(object: ApiObject, direction: Direction, index: number, problems: string[]): Rule {
  const list = direction === "ingress" ? "from" : "to";
  const all = <T>(key: string, read: (entry: ApiObject) => T | undefined): T[] | undefined => {
    const entries = mapsIn(object, key);
    if (entries.length === 0) return undefined;
    return entries.flatMap((entry, i) => {
      const value = read(entry);
      if (value === undefined) problems.push(`spec.${direction}[${index}].${key}[${i}]`);
      return value === undefined ? [] : [value];
    });
  };
  const [peers, ports] = [all(list, readPeer), all("ports", readPort)];
  return { ...(peers === undefined ? {} : { peers }), ...(ports === undefined ? {} : { ports }) };
}

/** A peer of a kind that is not known here has none of the three fields: it must not match anybody. */
function readPeer(object: ApiObject): Peer | undefined {
  const has = (key: string): boolean => object[key] !== undefined && object[key] !== null;
  const selected = has("podSelector") || has("namespaceSelector");
  if (has("ipBlock")) return selected ? undefined : readBlock(mapIn(object, "ipBlock"));
  if (!selected) return undefined;
  const pods = has("podSelector") ? readSelector(mapIn(object, "podSelector")) : "absent";
  const namespaces = has("namespaceSelector") ? readSelector(mapIn(object, "namespaceSelector")) : "absent";
  if (pods === undefined || namespaces === undefined) return undefined;
  return {
    t: "pods",
    ...(namespaces === "absent" ? {} : { namespaces }),
    ...(pods === "absent" ? {} : { pods }),
  };
}

function readBlock(object: ApiObject): BlockPeer | undefined {
  const cidr = blockOf(object["cidr"]);
  const except = listIn(object, "except").map(blockOf);
  // Without one of its exceptions the block would allow too much.
  if (cidr === undefined || !except.every((each) => each !== undefined)) return undefined;
  return { t: "block", cidr, except };
}

/** Host bits are masked. A block of IPv4-mapped IPv6 addresses is the block of the IPv4 addresses in it. */
function blockOf(text: unknown): Cidr | undefined {
  if (typeof text !== "string") return undefined;
  const cidr = parseCidr(text) ?? mappedBlockOf(text);
  return cidr === undefined ? undefined : { ip: firstOf(cidr), prefix: cidr.prefix };
}

const mappedBits = bitsOf(6) - bitsOf(4);

function mappedBlockOf(text: string): Cidr | undefined {
  const [, address = "", prefixText = ""] = /^([0-9a-fA-F:.]+)\/([0-9]{2,3})$/.exec(text) ?? [];
  const [ip, prefix] = [parseIp(address), Number(prefixText) - mappedBits];
  return ip?.family === 4 && address.includes(":") && prefix >= 0 && prefix <= bitsOf(4) ? { ip, prefix } : undefined;
}

const highestPort = 65_535;
const isPort = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value <= highestPort;

function readPort(object: ApiObject): Port | undefined {
  const { port, endPort } = object;
  const protocol = protocols.find((each) => each === (textIn(object, "protocol") ?? "TCP"));
  if (protocol === undefined) return undefined;
  if (port === undefined || port === null) return isAbsent(endPort) ? { protocol } : undefined;
  if (typeof port === "string") return port !== "" && isAbsent(endPort) ? { protocol, port } : undefined;
  if (!isPort(port)) return undefined;
  if (isAbsent(endPort)) return { protocol, port };
  return isPort(endPort) && endPort >= port ? { protocol, port, endPort } : undefined;
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

export const isInBlock = ({ cidr, except }: BlockPeer, ip: Cidr["ip"]): boolean =>
  contains(cidr, ip) && !except.some((each) => contains(each, ip));
