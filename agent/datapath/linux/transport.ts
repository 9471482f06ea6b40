import { type Cidr, sameIp } from "../../../shared/net/ip.ts";
import { listAddresses, type NetlinkSocket, readAddress } from "../../protocols/netlink/mod.ts";
import { findLink } from "./host-links.ts";
import { defaultMtu } from "./plan.ts";

/**
 * MTU of the interface by which the node reaches other nodes: the uplink, else the one with the node's address, else
 * Ethernet's default.
 */
export function transportMtu(
  socket: NetlinkSocket,
  uplink: string | undefined,
  nodeAddresses: readonly Cidr[],
): number {
  if (uplink !== undefined) return findLink(socket, { name: uplink })?.mtu ?? defaultMtu;
  const standing = socket.dump(listAddresses(0), readAddress);
  const holder = standing.find(({ address }) => nodeAddresses.some(({ ip }) => sameIp(ip, address.ip)));
  return (holder && findLink(socket, { index: holder.index })?.mtu) ?? defaultMtu;
}
