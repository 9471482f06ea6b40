import { type Cidr, formatIp, sameIp } from "../../../shared/net/ip.ts";
import {
  addAddress,
  Errno,
  isErrno,
  type Link,
  listAddresses,
  type NetlinkSocket,
  readAddress,
} from "../../protocols/netlink/mod.ts";
import { gatewayAddress } from "../addresses.ts";
import { addressesOn } from "./host-links.ts";
import { writeSysctl } from "./node-sysctls.ts";

/** The gateway addresses of these blocks that the interface lacks; all if it has gone since. */
export const missingGateways = (socket: NetlinkSocket, subnets: readonly Cidr[], { index }: Link): readonly Cidr[] =>
  missingFrom(
    (addressesOn(socket, index) ?? []).map(({ address }) => address),
    subnets.map(gatewayAddress),
  );

export const missingFrom = (standing: readonly Cidr[], wanted: readonly Cidr[]): readonly Cidr[] =>
  wanted.filter(({ ip, prefix }) => !standing.some((other) => sameIp(other.ip, ip) && other.prefix === prefix));

/**
 * Of an interface in the socket's namespace.
 * @throws {NetlinkError} also if it has gone, which must not be taken for "none"
 */
export function addressesOf(socket: NetlinkSocket, { index }: Pick<Link, "index">): readonly Cidr[] {
  return socket.dump(listAddresses(index), readAddress).flatMap((one) => (one.index === index ? [one.address] : []));
}

/** @throws {CniError | NetlinkError} */
export function addGateway(socket: NetlinkSocket, link: Link, address: Cidr): void {
  const message = addAddress(link.name, link.index, address);
  const [refusal] = socket.batch([message]);
  if (refusal === undefined || isErrno(refusal, Errno.EEXIST)) return;
  if (!isErrno(refusal, Errno.EACCES) || address.ip.family !== 6) throw refusal;
  writeSysctl(`/proc/sys/net/ipv6/conf/${link.name}/disable_ipv6`, "0", `add the gateway "${formatIp(address.ip)}"`);
  socket.run(message);
}
