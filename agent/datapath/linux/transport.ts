import { type Cidr, sameIp } from "../../../shared/net/ip.ts";
import { listAddresses, type NetlinkSocket, readAddress } from "../../protocols/netlink/mod.ts";
import { findLink } from "./host-links.ts";
import { defaultMtu } from "./plan.ts";

/**
 * Bytes that the interface takes by which the node reaches the others: the uplink, else the one that has the node's
 * address. Ethernet's own where there is neither.
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
