import { HealthCheckRequest, HealthCheckResponse } from "./health-messages.ts";
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
import { ListNodesRequest, ListTenantsRequest, NodesPage, TenantsPage } from "./registry-messages.ts";
import { type Method, unary } from "./services.ts";
import type { Codec } from "./wire.ts";

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

/** The registry of nodes as the agent reaches it (`pipette.proto`). */
export const registryService = {
  listNodes: streaming("/pipette.v1.Registry/ListNodes", ListNodesRequest, NodesPage),
  listTenants: streaming("/pipette.v1.Registry/ListTenants", ListTenantsRequest, TenantsPage),
} as const;

/** Whether a server, or one of its services, can serve (`health.proto`). */
export const healthService = {
  check: unary("/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse),
  watch: streaming("/grpc.health.v1.Health/Watch", HealthCheckRequest, HealthCheckResponse),
} as const;
