import { formatIp, ipOf } from "../../../shared/net/ip.ts";
import {
  connectionMarks,
  Destination,
  EndpointState,
  registers,
  Source,
} from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { TraceLine } from "./trace-text.ts";

/** Names a port of the switch by its number. */
export type PortName = (ofport: number) => string;

const allBits = (field: string): bigint =>
  (1n << (field.startsWith("xx") ? 128n : field.startsWith("x") ? 64n : 32n)) - 1n;

/** A match as ovs-ofctl writes it, with registers and marks in words; empty: everything. */
export function matchWords(match: string, port: PortName): string {
  if (match === "") return "any packet";
  return match
    .split(",")
    .map((part) => {
      const found = /^([a-z_0-9]+)=(0x[0-9a-f]+|\d+)(?:\/(0x[0-9a-f]+))?$/.exec(part);
      const [, field = "", value = "", mask] = found ?? [];
      if (found === null || !isRegister(field)) return part.replace(/^in_port="(.*)"$/, "in_port=$1");
      return registerText(field, BigInt(value), mask === undefined ? allBits(field) : BigInt(mask), port).join(", ");
    })
    .join(", ");
}

/** The decisions of a table, in words, without actions that only lead to the next table. */
export function decisionWords(lines: readonly TraceLine[], port: PortName): readonly string[] {
  return lines.flatMap(({ t, text }) => (t === "action" ? actionWords(text, port) : noteWords(t, text, port)));
}

const setWords: Readonly<Record<string, (value: string) => string>> = {
  eth_src: (value) => `source MAC becomes ${value}`,
  eth_dst: (value) => `destination MAC becomes ${value}`,
  ip_src: (value) => `source becomes ${value}`,
  ip_dst: (value) => `destination becomes ${value}`,
  ipv6_src: (value) => `source becomes ${value}`,
  ipv6_dst: (value) => `destination becomes ${value}`,
  tun_dst: (value) => `tunnel to ${value}`,
  tun_ipv6_dst: (value) => `tunnel to ${value}`,
  tun_id: (value) => `tunnel key ${Number(value)}`,
};

function actionWords(text: string, port: PortName): readonly string[] {
  const set = /^(?:set_field|load):([^/]+)(?:\/(0x[0-9a-f]+))?->([a-z_0-9]+)$/.exec(text);
  if (set !== null) return setFieldWords(set[3] ?? "", set[1] ?? "", set[2], port);
  const nat = /^nat\((src|dst)=([^)]+)\)$/.exec(text);
  if (nat !== null) return [`${nat[1] === "src" ? "source" : "destination"} translated to ${nat[2]}`];
  const group = /^group:(\d+)$/.exec(text);
  if (group !== null) return [`group ${group[1]} chooses`];
  if (text.startsWith("ct(")) return trackingWords(text);
  if (text.startsWith("learn(")) return ["remembers the choice for the next packets"];
  if (/^meter:\d+$/.test(text)) return ["counted among the pod's new connections"];
  if (text === "drop") return ["dropped"];
  if (text === "dec_ttl") return ["one hop counted"];
  if (text === "NORMAL") return ["switched by MAC address"];
  if (text === "IN_PORT") return ["sent back by the port where it came in"];
  if (text === "LOCAL") return ["given to the node"];
  const output = /^output:(.+)$/.exec(text);
  if (output !== null) return /^NXM_/.test(output[1] ?? "") ? [] : [`sent out by port ${output[1]}`];
  // Left out: the next table is the next step, and the others are internals of Open vSwitch.
  if (/^(resubmit\(|goto_table:|bucket \d+$|thaw$|Resuming from table |nat$|ct_clear$|group:|move:)/.test(text))
    return [];
  return [text];
}

function setFieldWords(field: string, value: string, mask: string | undefined, port: PortName): readonly string[] {
  if (isRegister(field) && /^(0x[0-9a-f]+|\d+)$/.test(value))
    return registerText(field, BigInt(value), mask === undefined ? allBits(field) : BigInt(mask), port);
  const say = setWords[field];
  return [say === undefined || mask !== undefined ? `${field} becomes ${value}` : say(value)];
}

/** The new value of a field that was copied from another; nothing for fields without a name here. */
function movedWords(field: string, from: bigint, value: string, port: PortName): readonly string[] {
  if (field === "tun_id") return [`tunnel key ${Number(value)}`];
  if (!isRegister(field)) return [];
  // A remark about a whole field does not tell which bits were set: those of the name that begins there count.
  return registerText(field, BigInt(value) << from, placeAt(field, Number(from)), port);
}

function trackingWords(text: string): readonly string[] {
  const zone = /zone=(\w+)/.exec(text)?.[1];
  const where = zone === undefined ? "" : ` (zone ${zone})`;
  return [text.includes("commit") ? `connection remembered${where}` : `connection looked up${where}`];
}

/** Only remarks that help people; others are about internals of the switch. */
function noteWords(t: "note" | "warning", text: string, port: PortName): readonly string[] {
  if (t === "warning") return [text];
  const output = /^output port is (\d+)$/.exec(text);
  if (output !== null) return [`sent out by port ${port(Number(output[1]))}`];
  const moved = /^(?:NXM|OXM)_[A-Z]+_([A-Z_0-9]+)\[(?:(\d+)(?:\.\.\d+)?)?\] is now (0x[0-9a-f]+|\d+)$/.exec(text);
  if (moved !== null) return movedWords((moved[1] ?? "").toLowerCase(), BigInt(moved[2] ?? 0), moved[3] ?? "0", port);
  const bucket = /^using bucket (\d+)$/.exec(text);
  if (bucket !== null) return [`bucket ${bucket[1]} is used`];
  return /^(tunneling to|neighbor cache miss|learned |no learned MAC|forwarding to)/.test(text) ? [text] : [];
}

/** Describes the value of some bits; `port` names ports of the switch. */
type Say = (value: bigint, port: (ofport: number) => string) => string;

const sources = new Map<number, string>([
  [Source.tunnel, "the tunnel"],
  [Source.gateway, "the gateway"],
  [Source.pod, "a pod"],
  [Source.uplink, "the uplink"],
  [Source.local, "the node itself"],
]);
const destinations = new Map<number, string>([
  [Destination.tunnel, "the tunnel"],
  [Destination.gateway, "the gateway"],
  [Destination.uplink, "the uplink"],
]);
const endpointStates = new Map<number, string>([
  [EndpointState.toSelect, "endpoint to be selected"],
  [EndpointState.selected, "endpoint selected"],
  [EndpointState.toLearn, "endpoint to be selected and remembered"],
]);

const named =
  (names: ReadonlyMap<number, string>, before: string): Say =>
  (value) =>
    `${before}${names.get(Number(value)) ?? value}`;
const flag =
  (yes: string, no: string): Say =>
  (value) =>
    value === 0n ? no : yes;

/** By the names of `registers.ts`. `endpointPortAndState` is described by its two parts. */
const registerWords = {
  source: named(sources, "from "),
  destination: named(destinations, "to "),
  rewriteMac: flag("to be routed", "not to be routed"),
  noEndpoint: flag("the service has no endpoint", "the service has endpoints"),
  nodePort: flag("for the node's own address", "not for the node's own address"),
  refused: flag("no rule of a policy allows it", "not refused by policies"),
  egressJudged: flag("a rule for sending is found", "no rule for sending is looked for"),
  ingressJudged: flag("a rule for receiving is found", "no rule for receiving is looked for"),
  rejudge: flag("the connection is to be judged again", "the connection is not to be judged again"),
  question: flag("made of an answer, to judge the connection", "not made of an answer"),
  output: flag("to be sent out", "not to be sent out"),
  outputPort: (value, port) => `by port ${port(Number(value))}`,
  scratch: (value) => `scratch ${value}`,
  endpointIp4: (value) => `endpoint ${formatIp(ipOf(4, value))}`,
  endpointIp6: (value) => `endpoint ${formatIp(ipOf(6, value))}`,
  endpointPort: (value) => `endpoint's port ${value}`,
  endpointState: named(endpointStates, ""),
  remoteEndpoint: flag("the endpoint is on another node", "the endpoint is on this node"),
  fromExternal: flag("from outside", "not from outside"),
  fromLocal: flag("from this node", "not from this node"),
  egressRule: (value) => `rule ${value} lets it be sent`,
  ingressRule: (value) => `rule ${value} lets it be received`,
  egressLabel: (value) => `label 0x${value.toString(16)}`,
  ingressLabel: (value) => `label 0x${value.toString(16)}`,
  serviceGroup: (value) => `group ${value}`,
  sourceTenant: (value) => `sender's project has VNID ${value}`,
  destinationTenant: (value) => `receiver's project has VNID ${value}`,
  trace: (value) => `trace ${value}`,
  untold: (value) => `tables to report 0x${value.toString(16)}`,
} as const satisfies Readonly<Record<Exclude<keyof typeof registers, "endpointPortAndState">, Say>>;

const markWords = {
  source: named(sources, "connection from "),
  service: flag("connection to a service", "no connection to a service"),
  snat: flag("connection with a translated source", "connection with its own source"),
  hairpin: flag("connection of a pod to itself", "no connection of a pod to itself"),
} as const satisfies Readonly<Record<keyof typeof connectionMarks, Say>>;

interface Place {
  readonly field: string;
  readonly from: bigint;
  readonly mask: bigint;
  readonly say: Say;
}

const placeOf = (
  { field, from, count }: { readonly field: { readonly name: string }; readonly from: number; readonly count: number },
  say: Say,
): Place => ({ field: field.name, from: BigInt(from), mask: ((1n << BigInt(count)) - 1n) << BigInt(from), say });

const places: readonly Place[] = [
  ...Object.entries(registerWords).map(([name, say]) => placeOf(registers[name as keyof typeof registerWords], say)),
  ...Object.entries(markWords).map(([name, say]) => placeOf(connectionMarks[name as keyof typeof markWords], say)),
];

/**
 * The content of a register or mark in words; bits without a name are shown as numbers.
 * @param mask the bits that count
 */
export function registerText(
  field: string,
  value: bigint,
  mask: bigint,
  port: (ofport: number) => string,
): readonly string[] {
  const known = places.filter((place) => place.field === field && (mask & place.mask) === place.mask);
  const words = known.map(({ from, mask: own, say }) => say((value & own) >> from, port));
  const rest = known.reduce((left, { mask: own }) => left & ~own, mask);
  // In a register that is set as a whole, only named or non-zero bits are shown.
  if ((value & rest) === 0n && known.length > 0) return words;
  return [...words, `${field}=0x${(value & rest).toString(16)}/0x${rest.toString(16)}`];
}

/** The bits of the name that begins there; all of them where none does. */
export function placeAt(field: string, from: number): bigint {
  const found = places.find((place) => place.field === field && place.from === BigInt(from));
  return found?.mask ?? allBits(field);
}

/** Whether this field is one of those that are named here. */
export const isRegister = (field: string): boolean => /^(reg\d+|x{1,2}reg\d|ct_mark)$/.test(field);
