import { CniCmdRequest, CniCmdResponse } from "./cni-messages.ts";
import {
  GcRequest,
  GcResponse,
  ListInterfacesRequest,
  ListInterfacesResponse,
  MendRequest,
  MendResponse,
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

export const unary = <Req, Res>(
  path: Method<Req, Res>["path"],
  request: Codec<Req>,
  response: Codec<Res>,
): Method<Req, Res> => ({ path, request, response, responseStream: false });

const cni = (name: string): Method<CniCmdRequest, CniCmdResponse> =>
  unary(`/antrea_io.antrea.pkg.apis.cni.v1beta1.Cni/${name}`, CniCmdRequest, CniCmdResponse);

/**
 * Metadata that our plugin sends, by `uptimeMs`, because the time of day may be set meanwhile; other clients send none.
 */
export const callTimes = { startedMs: "pipette-started-uptime-ms", untilMs: "pipette-until-uptime-ms" } as const;

/** The reference system's service (`cni.proto`). */
export const cniService = { cmdAdd: cni("CmdAdd"), cmdCheck: cni("CmdCheck"), cmdDel: cni("CmdDel") } as const;

/** The agent's additional methods (`pipette.proto`). */
export const nodeService = {
  gc: unary("/pipette.v1.Node/Gc", GcRequest, GcResponse),
  status: unary("/pipette.v1.Node/Status", StatusRequest, StatusResponse),
  listInterfaces: unary("/pipette.v1.Node/ListInterfaces", ListInterfacesRequest, ListInterfacesResponse),
  mend: unary("/pipette.v1.Node/Mend", MendRequest, MendResponse),
} as const;
