import { bits, whole } from "../../../protocols/openflow/mod.ts";

/** Where a packet comes from: `reg0[0..3]`, and for a connection's first packet `ct_mark[0..3]`. */
export const Source = { tunnel: 1, gateway: 2, pod: 3, uplink: 4, local: 5 } as const;
/** Where it goes: `reg0[4..7]`. */
export const Destination = { tunnel: 1, gateway: 2, uplink: 4 } as const;
/** The state of the choice of an endpoint: `reg4[16..18]`. */
export const EndpointState = { toSelect: 1, selected: 2, toLearn: 3 } as const;

/** The use of the registers, in Antrea's layout, so that people who know it find their way. */
export const registers = {
  source: bits("reg0", 0, 3),
  destination: bits("reg0", 4, 7),
  /** The packet is routed, so its MACs have to be rewritten. */
  rewriteMac: bits("reg0", 9),
  /** The matched service has no endpoint. */
  noEndpoint: bits("reg0", 14),
  /** No rule of a policy lets the packet pass. */
  refused: bits("reg0", 10),
  /** 1: to the port in `outputPort`. */
  output: bits("reg0", 21, 22),
  /** A rule was looked up for this packet, so that its connection is to get the label in `egressLabel`. */
  egressJudged: bits("reg0", 24),
  ingressJudged: bits("reg0", 25),
  /** The packet is an answer of a connection that is to be judged once more, and the question made of it for that. */
  rejudge: bits("reg0", 26),
  question: bits("reg0", 27),
  outputPort: whole("reg1"),
  /** For exchanging two fields. */
  scratch: whole("reg2"),
  endpointIp4: whole("reg3"),
  endpointIp6: whole("xxreg3"),
  endpointPort: bits("reg4", 0, 15),
  endpointState: bits("reg4", 16, 18),
  /** Port and state together, as one match. */
  endpointPortAndState: bits("reg4", 0, 18),
  /** The packet is for one of the node's own addresses, so that it may be for a node port. */
  nodePort: bits("reg4", 19),
  /** The endpoint is on another node. */
  remoteEndpoint: bits("reg4", 26),
  fromExternal: bits("reg4", 27),
  fromLocal: bits("reg4", 28),
  /** The policies' rules that let the packet pass, by their conjunctions' numbers. */
  egressRule: whole("reg5"),
  ingressRule: whole("reg6"),
  serviceGroup: whole("reg7"),
  egressLabel: whole("xreg4"),
  /** Beside the IPv6 endpoint, which is not needed any more by then. */
  ingressLabel: whole("xreg6"),
  /** VNID of the project that sent the packet, and of the one that is to get it. */
  sourceTenant: whole("reg10"),
  destinationTenant: whole("reg11"),
  /** The trace that a packet belongs to, and in which of its tables it is still to be reported: see `traced.ts`. */
  trace: bits("reg14", 0, 15),
  untold: whole("reg15"),
} as const;

/** Marks of a connection. */
export const connectionMarks = {
  source: bits("ct_mark", 0, 3),
  service: bits("ct_mark", 4),
  snat: bits("ct_mark", 5),
  hairpin: bits("ct_mark", 6),
} as const;

/** Of a connection, the rules that let it pass: see `policies.ts`. */
export const connectionLabels = { ingress: bits("ct_label", 0, 63), egress: bits("ct_label", 64, 127) } as const;

/** Zones of connection tracking: of the connection as it is, and of its source translation. */
export const zones = { 4: { main: 65520, snat: 65521 }, 6: { main: 65510, snat: 65511 } } as const;

/** The MAC of the next hop to every other node and to the services' virtual host. */
export const virtualMac = "aa:bb:cc:dd:ee:ff";
/** The virtual host's addresses, through which the node's route to all services leads. */
export const virtualServiceIp = { 4: "169.254.0.253", 6: "fc01::aabb:ccdd:eeff" } as const;
/** The address that the node's kernel gives to packets for node ports, so that they come to the bridge. */
export const virtualNodePortIp = { 4: "169.254.0.252", 6: "fc01::aabb:ccdd:eefe" } as const;
