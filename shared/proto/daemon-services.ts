import {
  AllocateRequest,
  AllocateResponse,
  CheckRequest,
  CheckResponse,
  CollectRequest,
  GetResponse,
  LeaseMessage,
  ListRequest,
  OwnerRequest,
  ReleaseResponse,
  StatsRequest,
  StatsResponse,
} from "./ipam-messages.ts";
import { GcResponse } from "./pipette-messages.ts";
import { type Method, unary } from "./services.ts";
import {
  bytes,
  type Codec,
  flag,
  int32,
  int64,
  type MessageOf,
  message,
  nested,
  repeated,
  text,
  texts,
} from "./wire.ts";

/** Services that a plugin never calls, so that it need not carry their messages. */

const streaming = <Req, Res>(
  path: Method<Req, Res>["path"],
  request: Codec<Req>,
  response: Codec<Res>,
): Method<Req, Res> => ({ path, request, response, responseStream: true });

/** The allocator by itself (`pipette.proto`). */
export const ipamService = {
  allocate: unary("/pipette.v1.Ipam/Allocate", AllocateRequest, AllocateResponse),
  release: unary("/pipette.v1.Ipam/Release", OwnerRequest, ReleaseResponse),
  get: unary("/pipette.v1.Ipam/Get", OwnerRequest, GetResponse),
  list: streaming("/pipette.v1.Ipam/List", ListRequest, LeaseMessage),
  check: unary("/pipette.v1.Ipam/Check", CheckRequest, CheckResponse),
  gc: unary("/pipette.v1.Ipam/Gc", CollectRequest, GcResponse),
  stats: unary("/pipette.v1.Ipam/Stats", StatsRequest, StatsResponse),
} as const;

export const ListNodesRequest = message({ rights: flag(1) });
export type ListNodesRequest = MessageOf<typeof ListNodesRequest>;

export const RegisteredNode = message({
  name: text(1),
  uid: text(2),
  addresses: texts(3),
  mac: text(4),
  subnets: texts(5),
  state: text(6),
  problem: text(7),
  encryption: text(8),
});
export type RegisteredNode = MessageOf<typeof RegisteredNode>;

export const NodesPage = message({
  registry: text(1),
  revision: int64(2),
  nodes: repeated(3, RegisteredNode),
  excessRights: texts(4),
  self: text(5),
});
export type NodesPage = MessageOf<typeof NodesPage>;

export const ListTenantsRequest = message({});
export type ListTenantsRequest = MessageOf<typeof ListTenantsRequest>;

/** `Tenant` in the proto. */
export const TenantMessage = message({
  project: text(1),
  vnid: int32(2),
  isConfirmed: flag(3),
  isShared: flag(4),
});
export type TenantMessage = MessageOf<typeof TenantMessage>;

export const TenantsPage = message({
  registry: text(1),
  keepsNone: flag(2),
  tenants: repeated(3, TenantMessage),
});
export type TenantsPage = MessageOf<typeof TenantsPage>;

/** The registry of nodes as the agent reaches it (`pipette.proto`). */
export const registryService = {
  listNodes: streaming("/pipette.v1.Registry/ListNodes", ListNodesRequest, NodesPage),
  listTenants: streaming("/pipette.v1.Registry/ListTenants", ListTenantsRequest, TenantsPage),
} as const;

export const ServingStatus = { unknown: 0, serving: 1, notServing: 2, serviceUnknown: 3 } as const;
export type ServingStatus = (typeof ServingStatus)[keyof typeof ServingStatus];

export const HealthCheckRequest = message({ service: text(1) });
export type HealthCheckRequest = MessageOf<typeof HealthCheckRequest>;

export const HealthCheckResponse = message({
  /** `ServingStatus`, or a number of a later day. */
  status: int32(1),
});
export type HealthCheckResponse = MessageOf<typeof HealthCheckResponse>;

/** Whether a server, or one of its services, can serve (`health.proto`). */
export const healthService = {
  check: unary("/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse),
  watch: streaming("/grpc.health.v1.Health/Watch", HealthCheckRequest, HealthCheckResponse),
} as const;

export const ListPoliciesRequest = message({ rule: int64(1) });
export type ListPoliciesRequest = MessageOf<typeof ListPoliciesRequest>;

export const PolicyRule = message({ policy: text(1), direction: text(2) });
export type PolicyRule = MessageOf<typeof PolicyRule>;

export const IsolatedPod = message({
  network: text(1),
  containerId: text(2),
  ifname: text(3),
  directions: texts(4),
  policies: texts(5),
});
export type IsolatedPod = MessageOf<typeof IsolatedPod>;

export const ListPoliciesResponse = message({
  rule: nested(1, PolicyRule),
  isolated: repeated(2, IsolatedPod),
});
export type ListPoliciesResponse = MessageOf<typeof ListPoliciesResponse>;

/** The network policies of a node, for people (`pipette.proto`). */
export const policyService = {
  list: unary("/pipette.v1.Policies/List", ListPoliciesRequest, ListPoliciesResponse),
} as const;

export const ListServicesRequest = message({});
export type ListServicesRequest = MessageOf<typeof ListServicesRequest>;

export const BalancedEndpoint = message({
  address: text(1),
  local: flag(2),
  internal: flag(3),
  external: flag(4),
  cluster: flag(5),
});
export type BalancedEndpoint = MessageOf<typeof BalancedEndpoint>;

export const BalancedService = message({
  key: text(1),
  protocol: text(2),
  clusterIp: text(3),
  port: int32(4),
  nodePort: int32(5),
  externalIps: texts(6),
  ingressIps: texts(7),
  restricted: flag(8),
  sourceRanges: texts(9),
  affinitySeconds: int32(10),
  keepsClient: flag(11),
  healthCheckNodePort: int32(12),
  endpoints: repeated(13, BalancedEndpoint),
  refused: text(14),
});
export type BalancedService = MessageOf<typeof BalancedService>;

export const TraceServiceRequest = message({ address: text(1), port: int32(2), protocol: text(3), sender: text(4) });
export type TraceServiceRequest = MessageOf<typeof TraceServiceRequest>;

export const TracedEndpoint = message({ address: text(1), local: flag(2), percent: int32(3) });
export type TracedEndpoint = MessageOf<typeof TracedEndpoint>;

export const TraceServiceResponse = message({
  outcome: text(1),
  key: text(2),
  reasons: texts(3),
  endpoints: repeated(4, TracedEndpoint),
});
export type TraceServiceResponse = MessageOf<typeof TraceServiceResponse>;

/** The services that a node balances, for people (`pipette.proto`). */
export const balancingService = {
  list: streaming("/pipette.v1.Services/List", ListServicesRequest, BalancedService),
  trace: unary("/pipette.v1.Services/Trace", TraceServiceRequest, TraceServiceResponse),
} as const;

export const GetDocumentRequest = message({ kind: text(1), name: text(2), ifNotRevision: text(3), waitMs: int64(4) });
export type GetDocumentRequest = MessageOf<typeof GetDocumentRequest>;

export const GetDocumentResponse = message({ revision: text(1), atMs: int64(2), json: bytes(3), unchanged: flag(4) });
export type GetDocumentResponse = MessageOf<typeof GetDocumentResponse>;

export const LogLevelRequest = message({ level: text(1) });
export type LogLevelRequest = MessageOf<typeof LogLevelRequest>;

export const LogLevelResponse = message({ level: text(1) });
export type LogLevelResponse = MessageOf<typeof LogLevelResponse>;

export const TraceRequestMessage = message({ json: bytes(1) });
export type TraceRequestMessage = MessageOf<typeof TraceRequestMessage>;

export const TraceResponse = message({ json: bytes(1) });
export type TraceResponse = MessageOf<typeof TraceResponse>;

/** What an operator sees of a node (`pipette.proto`). */
export const documentsService = {
  get: unary("/pipette.v1.Documents/Get", GetDocumentRequest, GetDocumentResponse),
  logLevel: unary("/pipette.v1.Documents/LogLevel", LogLevelRequest, LogLevelResponse),
  trace: unary("/pipette.v1.Documents/Trace", TraceRequestMessage, TraceResponse),
} as const;
