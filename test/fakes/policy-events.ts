import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import {
  ComputedPod,
  computedPodKind,
  encodeObject,
  encodeWatchFrame,
  GroupMessage,
  GroupPatch,
  NetworkPolicyMessage,
  type WatchEventType,
} from "../../shared/proto/control-plane-messages.ts";

/** One object of a controller's stream, in the bytes that it has there. */
export interface Told {
  readonly type: WatchEventType;
  readonly kind: string;
  readonly raw: Uint8Array;
}

type RuleMessage = NetworkPolicyMessage["rules"][number];
type Member = GroupMessage["members"][number];

const metadata = (name: string, namespace = "", uid = name): NetworkPolicyMessage["metadata"] => ({
  ...{ name, namespace, uid, generateName: "", selfLink: "", resourceVersion: "", generation: 1 },
  creationTimestamp: { seconds: 0, nanoseconds: 0 },
  annotations: [],
});

/** 16 bytes, as Go writes them. */
function ipBytes(text: string): Uint8Array {
  const { family, value } = parseIp(text) ?? { family: 4, value: 0n };
  const mapped = family === 4 ? (0xffffn << 32n) | value : value;
  return Uint8Array.fromHex(mapped.toString(16).padStart(32, "0"));
}

function net(text: string): { ip: Uint8Array; prefixLength: number } {
  const [address = ""] = text.split("/");
  return { ip: ipBytes(address), prefixLength: parseCidr(text)?.prefix ?? 0 };
}

interface RuleShape {
  readonly direction?: "In" | "Out";
  readonly groups?: readonly string[];
  readonly blocks?: readonly string[];
  /** "TCP", "TCP/80", "TCP/80-90", "TCP/web". */
  readonly ports?: readonly string[];
  readonly more?: Partial<RuleMessage>;
}

const nobody = { addressGroups: [], ipBlocks: [] };

function service(text: string): RuleMessage["services"][number] {
  const [protocol = "", port = ""] = text.split("/");
  const [first = "", last] = port.split("-");
  const isNumber = /^\d+$/.test(first);
  const value = { type: isNumber ? 0 : 1, number: isNumber ? Number(first) : 0, text: isNumber ? "" : first };
  return { protocol, ...(port === "" ? {} : { port: value }), endPort: Number(last ?? 0), groupAddress: "" };
}

function rule({ direction = "In", groups = [], blocks = [], ports = [], more = {} }: RuleShape): RuleMessage {
  const peer = { addressGroups: groups, ipBlocks: blocks.map((cidr) => ({ cidr: net(cidr), except: [] })) };
  const action = groups.length + blocks.length === 0 ? "" : "Allow";
  return {
    ...{ direction, priority: -1, action, enableLogging: false, appliedToGroups: [], name: "", logLabel: "" },
    from: direction === "In" ? peer : nobody,
    to: direction === "Out" ? peer : nobody,
    services: ports.map(service),
    ...more,
  };
}

/** A policy of namespace x. @param to its AppliedToGroup */
export const policy = (
  uid: string,
  to: string,
  rules: readonly RuleShape[],
  more: Partial<NetworkPolicyMessage> = {},
): Told => ({
  type: "ADDED",
  kind: "NetworkPolicy",
  raw: NetworkPolicyMessage.encode({
    metadata: metadata(uid),
    rules: rules.map(rule),
    appliedToGroups: [to],
    sourceRef: { type: "K8sNetworkPolicy", namespace: "x", name: uid, uid },
    ...more,
  }),
});

/** @param text "x/a 10.0.0.1 web:TCP/80" */
function member(text: string): Member {
  const [pod = "", ...rest] = text.split(" ");
  const [namespace = "", name = ""] = pod.split("/");
  const isPort = (part: string): boolean => part.includes(":") && part.includes("/");
  return {
    pod: { namespace, name },
    ips: rest.filter((part) => !isPort(part)).map(ipBytes),
    ports: rest.filter(isPort).map((part) => {
      const [of = "", protocol = "", port = ""] = part.split(/[:/]/);
      return { name: of, protocol, port: Number(port) };
    }),
  };
}

const group =
  (kind: string) =>
  (name: string, ...members: readonly string[]): Told => ({
    type: "ADDED",
    kind,
    raw: GroupMessage.encode({ metadata: metadata(name), members: members.map(member) }),
  });

export const targets = group("AppliedToGroup");
export const addresses = group("AddressGroup");

export const patched = (
  kind: "AppliedToGroup" | "AddressGroup",
  name: string,
  added: readonly string[],
  removed: readonly string[] = [],
): Told => ({
  type: "MODIFIED",
  kind: `${kind}Patch`,
  raw: GroupPatch.encode({ metadata: metadata(name), added: added.map(member), removed: removed.map(member) }),
});

export function computed(pod: string, uid = pod): Told {
  const [namespace = "", name = ""] = pod.split("/");
  return {
    type: "ADDED",
    kind: computedPodKind,
    raw: ComputedPod.encode({ metadata: metadata(name, namespace, uid) }),
  };
}

export const bookmark = (annotations: Readonly<Record<string, string>> = {}): Told => ({
  type: "BOOKMARK",
  kind: "NetworkPolicy",
  raw: NetworkPolicyMessage.encode({
    metadata: { ...metadata(""), annotations: Object.entries(annotations).map(([key, value]) => ({ key, value })) },
    rules: [],
    appliedToGroups: [],
  }),
});

export const gone = (told: Told): Told => ({ ...told, type: "DELETED" });

export const frameOf = ({ type, kind, raw }: Told): Uint8Array => encodeWatchFrame(type, encodeObject(kind, raw));
