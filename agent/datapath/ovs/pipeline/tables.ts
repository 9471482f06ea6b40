/**
 * The tables that a packet passes, in their order. Flows of an earlier agent version stay until this one has added its
 * own, so numbers never change; there is room in between for the tables of network policies.
 */
export const tables = {
  PipelineRootClassifier: 0,
  ARPSpoofGuard: 10,
  ARPResponder: 20,
  Classifier: 30,
  SpoofGuard: 40,
  PacketGuard: 45,
  IPv6: 50,
  UnSNAT: 60,
  ConntrackZone: 70,
  ConntrackState: 80,
  PreRoutingClassifier: 90,
  SessionAffinity: 100,
  ServiceLB: 110,
  EndpointDNAT: 120,
  L3Forwarding: 140,
  L3DecTTL: 150,
  SNATMark: 160,
  SNAT: 170,
  L2ForwardingCalc: 180,
  TenantIsolation: 200,
  ConntrackCommit: 220,
  Output: 240,
} as const;

export type TableName = keyof typeof tables;

/** What each table decides, in words for a person. */
export const tableRoles: Readonly<Record<TableName, string>> = {
  PipelineRootClassifier: "tells ARP, IPv4 and IPv6 apart",
  ARPSpoofGuard: "lets only ARP from a port's own address and MAC pass",
  ARPResponder: "answers ARP in the place of who has the address",
  Classifier: "notes where the packet comes from",
  SpoofGuard: "lets only packets from a port's own address and MAC pass",
  PacketGuard: "drops what nobody may send",
  IPv6: "answers neighbour discovery in the place of who has the address",
  UnSNAT: "undoes source translation for replies",
  ConntrackZone: "looks the connection up",
  ConntrackState: "drops what belongs to no connection, and lets known connections of services pass",
  PreRoutingClassifier: "sends new connections past the services",
  SessionAffinity: "remembers which endpoint a client has",
  ServiceLB: "chooses an endpoint of a service",
  EndpointDNAT: "translates the service's address to the endpoint's",
  L3Forwarding: "decides where the packet goes",
  L3DecTTL: "counts the hop",
  SNATMark: "marks connections whose source is to be translated",
  SNAT: "translates the source",
  L2ForwardingCalc: "finds the port of the destination's MAC",
  TenantIsolation: "lets packets pass only within a project",
  ConntrackCommit: "remembers the connection",
  Output: "sends the packet out",
};
