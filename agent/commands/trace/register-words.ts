import { formatIp, ipOf } from "../../../shared/net/ip.ts";
import {
  connectionMarks,
  Destination,
  EndpointState,
  registers,
  Source,
} from "../../datapath/ovs/pipeline/vocabulary.ts";

/** What a value of some bits says; `port` names ports of the switch. */
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

/** By the names of `registers.ts`. `endpointPortAndState` is told by its two parts. */
const registerWords = {
  source: named(sources, "from "),
  destination: named(destinations, "to "),
  rewriteMac: flag("to be routed", "not to be routed"),
  noEndpoint: flag("the service has no endpoint", "the service has endpoints"),
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
  serviceGroup: (value) => `group ${value}`,
  sourceTenant: (value) => `sender's project has VNID ${value}`,
  destinationTenant: (value) => `receiver's project has VNID ${value}`,
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
 * What is in a register or mark, in words; what no name is known for stands there as it is.
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
  // Of a register that is set whole, only what is named or not zero says something.
  if ((value & rest) === 0n && known.length > 0) return words;
  return [...words, `${field}=0x${(value & rest).toString(16)}/0x${rest.toString(16)}`];
}

/** The bits of the name that begins there; all of them where none does. */
export function placeAt(field: string, from: number): bigint {
  const found = places.find((place) => place.field === field && place.from === BigInt(from));
  return found?.mask ?? (field.startsWith("xx") ? (1n << 128n) - 1n : (1n << 32n) - 1n);
}

/** Whether this field is one of those that are named here. */
export const isRegister = (field: string): boolean => /^(reg\d+|xxreg\d|ct_mark)$/.test(field);
