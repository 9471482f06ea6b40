import type { Cidr, Ip } from "../../../../shared/net/ip.ts";
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
import { Category, cookieOf, learnedBit } from "../pipeline/cookie.ts";
import { markSnat, Priority, rememberSource, step } from "../pipeline/mod.ts";
import { connectionMarks, EndpointState, registers, zones } from "../pipeline/registers.ts";
import { tables } from "../pipeline/tables.ts";
import type { FlowSet } from "../program/flow-set.ts";
import type { Endpoint, Service } from "./service.ts";

const { toSelect, selected, toLearn } = EndpointState;
/**
 * Clients of one service with affinity that are remembered: more than a large cluster has pods, so that forged
 * addresses cannot fill the table.
 */
const maxClients = 20_000;

/** Marks a connection as a service's, with its source. */
const remembered: readonly Action[] = [load(connectionMarks.service, 1), rememberSource];
const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;

/**
 * One service: the flow that matches it, the group that chooses an endpoint, and for each endpoint a translating flow.
 * All carry the group's number, which translating flows match too, so that a client whose remembered endpoint has left
 * this service gets another one, although other services may still have that endpoint.
 *
 * Without an endpoint the service's packets are dropped, as are those for addresses that no service has.
 * @param number of the group and in cookies; of this service alone, and the same after the agent has restarted
 */
export function serviceFlowSet(service: Service, number: number): FlowSet {
  const { category, object } = { category: Category.service, object: number };
  const met = step("ServiceLB", Priority.normal, meeting(service), chooseFrom(service, number));
  if (service.endpoints.length === 0) return { category, object, flows: [met] };
  const flows = [
    met,
    ...(service.affinitySeconds === undefined ? [] : [learnFlow(service, number, service.affinitySeconds)]),
    ...service.endpoints.map((endpoint) => translateFlow(service, endpoint, number)),
  ];
  return { category, object, flows, groups: [groupOf(service, number)] };
}

/** The packet is of the service's protocol. */
const ofProtocol = ({ clusterIp: { family }, protocol }: Service): MatchBuilder =>
  match().protocol(family === 4 ? protocol : `${protocol}6`);

/** The packet is for the service. */
const addressed = (service: Service): MatchBuilder =>
  ofProtocol(service).destination(service.clusterIp).set(`${service.protocol}_dst`, service.port);

const meeting = (service: Service): MatchBuilder => addressed(service).bits(registers.endpointState, toSelect);

function chooseFrom({ endpoints, affinitySeconds }: Service, number: number): readonly Action[] {
  if (endpoints.length === 0) return [];
  return [
    load(registers.rewriteMac, 1),
    load(registers.endpointState, affinitySeconds === undefined ? selected : toLearn),
    load(registers.serviceGroup, number),
    toGroup(number),
  ];
}

/**
 * One bucket for each endpoint, by weight. With affinity the packet passes the service's table again, and the endpoint
 * is chosen by the client's address alone, so that concurrent first connections of a client get the same one.
 */
function groupOf({ clusterIp, endpoints, affinitySeconds }: Service, number: number): OpenFlowGroup {
  const isKept = affinitySeconds !== undefined;
  const next = resubmit(isKept ? tables.ServiceLB : tables.EndpointDNAT);
  const buckets = endpoints.map(({ ip, port, weight }) => {
    const chosen = setField(ip.family === 4 ? "reg3" : "xxreg3", ip);
    return { weight, actions: [chosen, load(registers.endpointPort, port), next] };
  });
  const client = clusterIp.family === 4 ? "ip_src" : "ipv6_src";
  return group(number, "select", buckets, isKept ? { method: "hash", fields: [client] } : undefined);
}

/**
 * Remembers the client's endpoint, from its first packet on. The learned flow belongs to no round: it outlives the
 * agent, and is deleted with the flow that learned it.
 */
function learnFlow(service: Service, number: number, seconds: number): Flow {
  const { clusterIp, protocol } = service;
  const is4 = clusterIp.family === 4;
  const endpointIp = is4 ? registers.endpointIp4 : registers.endpointIp6;
  const remember = learn({
    table: tables.SessionAffinity,
    priority: Priority.normal,
    cookie: cookieOf(0, Category.service, number) | learnedBit,
    hardTimeout: seconds,
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
      learnLoad(registers.serviceGroup, number),
    ],
  });
  const chosen = addressed(service).bits(registers.endpointState, toLearn);
  return step("ServiceLB", Priority.low, chosen, [remember, load(registers.endpointState, selected)], "EndpointDNAT");
}

/** From the service's address to the endpoint's, for all packets of the connection. */
function translateFlow(service: Service, { ip, port }: Endpoint, number: number): Flow {
  const chosen = ofProtocol(service)
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
 * address, and its reply would not come back here.
 */
export function hairpinFlowSet(endpoint: Ip): FlowSet {
  const toItself = match()
    .family(endpoint.family)
    .ctState("+new+trk")
    .bits(connectionMarks.service, 1)
    .source(endpoint)
    .destination(endpoint);
  const flows = [step("SNATMark", Priority.low, toItself, [markSnat(endpoint.family, "hairpin")])];
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
