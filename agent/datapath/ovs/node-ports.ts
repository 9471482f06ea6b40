import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import type { TunnelOptions } from "../../config/ovs-config.ts";
import { type PortRole, roleIds } from "./port-identity.ts";

/** A port that the node itself needs on its bridge, as it is to stand in the database. */
export interface NodePort {
  readonly name: string;
  readonly role: Exclude<PortRole, "pod">;
  readonly interface: {
    readonly type: string;
    readonly ofport_request: number;
    readonly options: Readonly<Record<string, string>>;
    readonly mac?: string;
    readonly mtu_request?: number;
  };
  readonly ids: Readonly<Record<string, string>>;
}

/** The reference system's numbers: far from those that pods get. */
const ofports = { tunnel: 32768, gateway: 32769, uplink: 32770 } as const;

export const gatewayPort = (name: string, mac: string, mtu: number): NodePort => ({
  name,
  role: "gateway",
  interface: { type: "internal", ofport_request: ofports.gateway, options: {}, mac, mtu_request: mtu },
  ids: roleIds("gateway"),
});

/** One port for all peers: each flow says where its packets go. @param localIp the outer source; absent: the route's */
export const tunnelPort = ({ name, type, port, checksum }: TunnelOptions, localIp: Ip | undefined): NodePort => ({
  name,
  role: "tunnel",
  interface: {
    type,
    ofport_request: ofports.tunnel,
    options: {
      remote_ip: "flow",
      key: "flow",
      ...(localIp === undefined ? {} : { local_ip: formatIp(localIp) }),
      ...(port === undefined || type === "gre" ? {} : { dst_port: String(port) }),
      ...(checksum ? { csum: "true" } : {}),
    },
  },
  ids: roleIds("tunnel"),
});

export const uplinkPort = (name: string): NodePort => ({
  name,
  role: "uplink",
  interface: { type: "", ofport_request: ofports.uplink, options: {} },
  ids: roleIds("uplink"),
});
