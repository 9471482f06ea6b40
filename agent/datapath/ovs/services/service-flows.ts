import { type Cidr, firstOf, formatCidr, type Ip } from "../../../../shared/net/ip.ts";
import {
  type Action,
  ct,
  type Flow,
  group,
  learn,
  learnLoad,
  learnMatch,
  load,
  type MatchBuilder,
  match,
  type OpenFlowGroup,
  resubmit,
  setField,
  toGroup,
  whole,
} from "../../../protocols/openflow/mod.ts";
import type { Endpoint } from "../../services.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import { Category, cookieOf, learnedBit } from "../pipeline/cookie.ts";
import { markSnat, Priority, rememberSource, selectService, step } from "../pipeline/mod.ts";
import { connectionMarks, EndpointState, registers, Source, zones } from "../pipeline/registers.ts";
import { tables } from "../pipeline/tables.ts";
import type { FlowSet } from "../program/flow-set.ts";
import { familyOf, holdsAny, type Place, placeName, type ServedPort } from "./served-port.ts";

const { toSelect, selected, toLearn } = EndpointState;
/**
 * Clients of one service with affinity that are remembered: more than a large cluster has pods, so that forged
 * addresses cannot fill the table.
 */
const maxClients = 20_000;

/** Marks a connection as a service's, with its source. */
const remembered: readonly Action[] = [load(connectionMarks.service, 1), rememberSource];
const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;

/** What the flows of services need to know of the node. */
export type ServiceContext = Pick<PipelineContext, "podSubnets" | "gateway" | "nodeAddresses">;

/** Numbers of groups and cookies by name: of this service alone, and the same after the agent has restarted. */
export type Numbers = (name: string) => number;

/** One list of endpoints, with the number of its group. */
interface Choice {
  readonly number: number;
  readonly endpoints: readonly Endpoint[];
}

/** A place, and who chooses whom there. */
interface Meeting {
  readonly place: Place;
  readonly choice: Choice;
  /** Absent: whoever comes. */
  readonly from?: "outside" | "inside";
}

/** All names that a service port may ask numbers for. */
export const numberNames = (served: ServedPort): readonly string[] => [
  ...choiceNames.map((name) => served.key + name),
  ...served.places.map((place) => cookieName(served, place)),
];

/** Of the first, second and third list that differs from those before: as the cluster IP, others and insiders have. */
const choiceNames = ["", " external", " cluster"] as const;
const cookieName = ({ key }: ServedPort, place: Place): string => `${key} at ${placeName(place)}`;

/**
 * One service port: flows that meet it at its places, for each list of endpoints a group that chooses, and for each
 * endpoint a translating flow. These carry the group's number, and translating flows match it too, so that a client
 * whose remembered endpoint has left this service gets another one, although other services may still have that
 * endpoint.
 *
 * Where nobody is to answer: without any endpoint the packet is refused (see `refusedFlows`), and if there are some
 * that may not be used, it is dropped, as are packets for addresses that no service has.
 */
export function serviceFlowSet(served: ServedPort, numbers: Numbers, context: ServiceContext): FlowSet {
  const choices = choicesOf(served, numbers);
  const meetings = served.places.flatMap((place) => meetingsAt(place, choices));
  const used = [...choices.values()].filter(({ endpoints }) => endpoints.length > 0);
  return {
    category: Category.service,
    object: numbers(served.key),
    flows: [
      ...meetings.map((meeting) => meetFlow(served, meeting)),
      ...served.places.flatMap((place) => rangeFlows(served, place, context)),
      ...meetings.flatMap((meeting) => learnFlows(served, meeting, numbers)),
      ...used.flatMap((choice) => choice.endpoints.map((endpoint) => translateFlow(served, endpoint, choice.number))),
    ],
    ...(used.length === 0 ? {} : { groups: used.map((choice) => groupOf(served, choice)) }),
  };
}

/** By the list of endpoints. */
function choicesOf(served: ServedPort, numbers: Numbers): ReadonlyMap<readonly Endpoint[], Choice> {
  const choices = new Map<readonly Endpoint[], Choice>();
  const [clusterIp, other = clusterIp] = served.places;
  [clusterIp?.inside, other?.outside, other?.inside].forEach((endpoints, i) => {
    if (endpoints === undefined || choices.has(endpoints)) return;
    choices.set(endpoints, { endpoints, number: numbers(`${served.key}${choiceNames[i]}`) });
  });
  return choices;
}

function meetingsAt(place: Place, choices: ReadonlyMap<readonly Endpoint[], Choice>): readonly Meeting[] {
  const inside = choices.get(place.inside);
  const outside = choices.get(place.outside);
  if (inside === undefined || outside === undefined) return [];
  if (inside === outside) return [{ place, choice: inside }];
  return [
    { place, choice: inside, from: "inside" },
    { place, choice: outside, from: "outside" },
  ];
}

/** The packet is of the service's protocol. */
const ofProtocol = (served: ServedPort): MatchBuilder =>
  match().protocol(familyOf(served) === 4 ? served.protocol : `${served.protocol}6`);

/** The packet is for the service. */
function addressed(served: ServedPort, { ip, port }: Place): MatchBuilder {
  const packet = ofProtocol(served).set(`${served.protocol}_dst`, port);
  return ip === undefined ? packet.bits(registers.nodePort, 1) : packet.destination(ip);
}

function meetFlow(served: ServedPort, { place, choice, from }: Meeting): Flow {
  const met = addressed(served, place).bits(registers.endpointState, toSelect);
  if (from === "outside") met.bits(registers.fromExternal, 1);
  const priority = from === "outside" ? Priority.high : Priority.normal;
  if (!served.hasEndpoints) return step("ServiceLB", priority, met, [load(registers.noEndpoint, 1)], "EndpointDNAT");
  return step("ServiceLB", priority, met, choice.endpoints.length === 0 ? [] : chooseFrom(served, choice));
}

const chooseFrom = ({ affinitySeconds }: ServedPort, { number }: Choice): readonly Action[] => [
  load(registers.rewriteMac, 1),
  load(registers.endpointState, affinitySeconds === undefined ? selected : toLearn),
  load(registers.serviceGroup, number),
  toGroup(number),
];

/** Only who comes from the ranges is sent to the services, and the node itself where they have an address of it. */
function rangeFlows(served: ServedPort, place: Place, { gateway, nodeAddresses }: ServiceContext): readonly Flow[] {
  if (place.ranges === undefined) return [];
  const family = familyOf(served);
  const ranges = place.ranges.filter(({ ip }) => ip.family === family);
  const own = [...gateway.addresses, ...nodeAddresses.map(({ ip }) => ip)];
  const distinct = new Map(ranges.map((range) => [formatCidr({ ip: firstOf(range), prefix: range.prefix }), range]));
  const passing = [...distinct.values()].map((range) =>
    addressed(served, place).cidr(family === 4 ? "ip_src" : "ipv6_src", range),
  );
  if (holdsAny(ranges, own))
    passing.push(addressed(served, place).bits(registers.source, Source.gateway).bits(registers.fromLocal, 1));
  return [
    step("PreRoutingClassifier", Priority.low, addressed(served, place), []),
    ...passing.map((packet) => step("PreRoutingClassifier", Priority.normal, packet, selectService)),
  ];
}

/**
 * One bucket for each endpoint, by weight. With affinity the packet passes the service's table again, and the endpoint
 * is chosen by the client's address alone, so that concurrent first connections of a client get the same one.
 */
function groupOf(served: ServedPort, { number, endpoints }: Choice): OpenFlowGroup {
  const isKept = served.affinitySeconds !== undefined;
  const next = resubmit(isKept ? tables.ServiceLB : tables.EndpointDNAT);
  const buckets = endpoints.map(({ ip, port, weight }) => {
    const chosen = setField(ip.family === 4 ? "reg3" : "xxreg3", ip);
    return { weight, actions: [chosen, load(registers.endpointPort, port), next] };
  });
  const client = familyOf(served) === 4 ? "ip_src" : "ipv6_src";
  return group(number, "select", buckets, isKept ? { method: "hash", fields: [client] } : undefined);
}

/**
 * Remembers the client's endpoint, from its first packet on. The learned flow belongs to no round: it outlives the
 * agent, and is deleted with the flow that learned it.
 */
function learnFlows(served: ServedPort, { place, choice, from }: Meeting, numbers: Numbers): readonly Flow[] {
  const { affinitySeconds, protocol } = served;
  if (affinitySeconds === undefined || choice.endpoints.length === 0) return [];
  const is4 = familyOf(served) === 4;
  const endpointIp = is4 ? registers.endpointIp4 : registers.endpointIp6;
  const isClusterIp = place === served.places[0];
  const object = isClusterIp ? choice.number : numbers(cookieName(served, place));
  const remember = learn({
    table: tables.SessionAffinity,
    priority: Priority.normal,
    cookie: cookieOf(0, Category.service, object) | learnedBit,
    hardTimeout: affinitySeconds,
    deleteLearned: true,
    limit: maxClients,
    specs: [
      learnMatch(whole("eth_type"), is4 ? 0x0800 : 0x86dd),
      learnMatch(whole("nw_proto"), protocolNumbers[protocol]),
      learnMatch(whole(`${protocol}_dst`)),
      learnMatch(whole(is4 ? "ip_dst" : "ipv6_dst")),
      learnMatch(whole(is4 ? "ip_src" : "ipv6_src")),
      learnLoad(endpointIp, endpointIp),
      learnLoad(registers.endpointPort, registers.endpointPort),
      learnLoad(registers.endpointState, selected),
      learnLoad(registers.rewriteMac, 1),
      learnLoad(registers.serviceGroup, choice.number),
    ],
  });
  const chosen = addressed(served, place).bits(registers.endpointState, toLearn);
  if (from !== undefined) chosen.bits(registers.serviceGroup, choice.number);
  const actions = [remember, load(registers.endpointState, selected)];
  return [step("ServiceLB", Priority.low, chosen, actions, "EndpointDNAT")];
}

/** From the service's address to the endpoint's, for all packets of the connection. */
function translateFlow(served: ServedPort, { ip, port }: Endpoint, number: number): Flow {
  const chosen = ofProtocol(served)
    .set(ip.family === 4 ? "reg3" : "xxreg3", ip)
    .bits(registers.endpointPortAndState, (selected << 16) | port)
    .bits(registers.serviceGroup, number);
  const translate = ct({
    commit: true,
    table: tables.EgressRule,
    zone: zones[ip.family].main,
    nat: { side: "dst", from: ip, port },
    exec: remembered,
  });
  return step("EndpointDNAT", Priority.normal, chosen, [translate]);
}

/**
 * A pod that reaches itself through a service needs its source translated: it would not accept packets from its own
 * address, and its reply would not come back here. What comes by the node's kernel does not leave where it came in.
 */
export function hairpinFlowSet(endpoint: Ip): FlowSet {
  const toItself = (source: number): MatchBuilder =>
    match()
      .family(endpoint.family)
      .ctState("+new+trk")
      .bits(connectionMarks.service, 1)
      .bits(registers.source, source)
      .source(endpoint)
      .destination(endpoint);
  const flows = [
    step("SNATMark", Priority.low, toItself(Source.pod), [markSnat(endpoint.family, "hairpin")]),
    step("SNATMark", Priority.low, toItself(Source.gateway), [markSnat(endpoint.family, "snat")]),
  ];
  return { category: Category.service, flows };
}

/** Drops packets to addresses of no service, which the node's kernel would send back. */
export function noServiceFlowSet(cidrs: readonly Cidr[]): FlowSet {
  const flows = cidrs.map((cidr) => {
    const { family } = cidr.ip;
    const inside = match()
      .family(family)
      .bits(registers.endpointState, toSelect)
      .cidr(family === 4 ? "ip_dst" : "ipv6_dst", cidr);
    return step("ServiceLB", Priority.low, inside, []);
  });
  return { category: Category.service, flows };
}
