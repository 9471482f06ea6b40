import { CniCmdRequest, CniCmdResponse } from "./cni-messages.ts";
import {
  AllocateRequest,
  AllocateResponse,
  GcRequest,
  GcResponse,
  GetResponse,
  LeaseMessage,
  ListInterfacesRequest,
  ListInterfacesResponse,
  ListRequest,
  OwnerRequest,
  ReleaseResponse,
  StatusRequest,
  StatusResponse,
} from "./pipette-messages.ts";
import type { Codec } from "./wire.ts";

/** One rpc of a service. */
export interface Method<Req, Res> {
  /** `/package.Service/Name`, as HTTP/2 carries it. */
  readonly path: `/${string}/${string}`;
  readonly request: Codec<Req>;
  readonly response: Codec<Res>;
  /** `true` where any number of responses may come. */
  readonly responseStream: boolean;
}

const unary = <Req, Res>(
  path: Method<Req, Res>["path"],
  request: Codec<Req>,
  response: Codec<Res>,
): Method<Req, Res> => ({ path, request, response, responseStream: false });

const cni = (name: string): Method<CniCmdRequest, CniCmdResponse> =>
  unary(`/antrea_io.antrea.pkg.apis.cni.v1beta1.Cni/${name}`, CniCmdRequest, CniCmdResponse);

/** The reference system's service (`cni.proto`). */
export const cniService = { cmdAdd: cni("CmdAdd"), cmdCheck: cni("CmdCheck"), cmdDel: cni("CmdDel") } as const;

/** What the agent serves beyond it (`pipette.proto`). */
export const nodeService = {
  gc: unary("/pipette.v1.Node/Gc", GcRequest, GcResponse),
  status: unary("/pipette.v1.Node/Status", StatusRequest, StatusResponse),
  listInterfaces: unary("/pipette.v1.Node/ListInterfaces", ListInterfacesRequest, ListInterfacesResponse),
} as const;

const list: Method<ListRequest, LeaseMessage> = {
  path: "/pipette.v1.Ipam/List",
  request: ListRequest,
  response: LeaseMessage,
  responseStream: true,
};

/** The allocator by itself (`pipette.proto`). */
export const ipamService = {
  allocate: unary("/pipette.v1.Ipam/Allocate", AllocateRequest, AllocateResponse),
  release: unary("/pipette.v1.Ipam/Release", OwnerRequest, ReleaseResponse),
  get: unary("/pipette.v1.Ipam/Get", OwnerRequest, GetResponse),
  list,
} as const;
