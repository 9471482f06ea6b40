import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, contains, firstOf, formatCidr, formatIp, plus, sameIp } from "../../../shared/ip.ts";
import {
  addAddress,
  Errno,
  isRefusal,
  type Link,
  listAddresses,
  type NetlinkSocket,
  readAddress,
} from "../../netlink/mod.ts";
import { writeSysctl } from "./sysctl.ts";

/** The first address of the block, with the block's prefix length. */
export function gatewayAddress(subnet: Cidr): Cidr {
  const ip = plus(firstOf(subnet), 1n);
  if (!contains(subnet, ip)) {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot use the subnet "${formatCidr(subnet)}": it has no room for a gateway, wanted a larger block`,
    );
  }
  return { ip, prefix: subnet.prefix };
}

/** The gateway addresses of these blocks that the interface lacks. */
export function missingGateways(socket: NetlinkSocket, subnets: readonly Cidr[], link: Link): readonly Cidr[] {
  const standing = socket.dump(listAddresses(link.index), readAddress).filter(({ index }) => index === link.index);
  return subnets
    .map(gatewayAddress)
    .filter(({ ip, prefix }) => !standing.some(({ address: a }) => sameIp(a.ip, ip) && a.prefix === prefix));
}

/** @throws {CniError | NetlinkError} */
export function addGateway(socket: NetlinkSocket, link: Link, address: Cidr): void {
  const message = addAddress(link.name, link.index, address);
  const [refusal] = socket.batch([message]);
  if (refusal === undefined || isRefusal(refusal, Errno.EEXIST)) return;
  if (!isRefusal(refusal, Errno.EACCES) || address.ip.family !== 6) throw refusal;
  writeSysctl(`/proc/sys/net/ipv6/conf/${link.name}/disable_ipv6`, "0", `add the gateway "${formatIp(address.ip)}"`);
  socket.run(message);
}
