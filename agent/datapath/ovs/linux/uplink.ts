import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Cidr, contains, formatCidr, parseCidr } from "../../../../shared/net/ip.ts";
import {
  addRouteBy,
  deleteRouteBy,
  Errno,
  isErrno,
  type Link,
  listRoutes,
  type Message,
  type NetlinkSocket,
  readWholeRoute,
  removeAddress,
  setLink,
  type WholeRoute,
  waysOf,
} from "../../../protocols/netlink/mod.ts";
import { addGateway, addressesOf } from "../../linux/gateway.ts";
import { skipAddressDetection } from "../../linux/node-sysctls.ts";

const linkLocal = parseCidr("fe80::/10");

export const isLinkLocal = ({ ip }: Cidr): boolean => linkLocal !== undefined && contains(linkLocal, ip);

/** Configured routes by this interface. @throws {NetlinkError} */
export const routesBy = (socket: NetlinkSocket, { index }: Pick<Link, "index">): readonly WholeRoute[] =>
  ([4, 6] as const)
    .flatMap((family) => socket.dump(listRoutes(family), readWholeRoute).flatMap(waysOf))
    .filter(({ isConfigured, indexes }) => isConfigured && indexes.includes(index));

/**
 * Moves addresses and routes from one interface to another. Each is added to the new one before it is removed from the
 * old one, and addresses are removed last, because the kernel deletes their routes with them. So the next call finishes
 * what a killed one has left. Link-local addresses stay, as each interface has its own.
 * @throws {CniError} 102 where an IPv4 route leads out by several interfaces
 * @throws {NetlinkError}
 */
export function moveAddresses(socket: NetlinkSocket, from: Link, to: Link): void {
  const addresses = addressesOf(socket, from).filter((address) => !isLinkLocal(address));
  const routes = routesBy(socket, from);
  for (const route of routes) requireSingle(route, from);
  if (addresses.some(({ ip }) => ip.family === 6)) skipAddressDetection(to.name);
  if (!to.up) socket.run(setLink(to.name, to.index, { up: true }));
  for (const address of addresses) addGateway(socket, to, address);
  // On-link routes first, because routes through gateways need them.
  const ordered = routes.toSorted((a, b) => b.dst.prefix - a.dst.prefix);
  runEach(socket, ordered, (route) => addRouteBy(route, to.index), Errno.EEXIST);
  runEach(socket, ordered, (route) => deleteRouteBy(route, from.index), Errno.ESRCH);
  runEach(
    socket,
    addresses,
    (address) => removeAddress(from.name, from.index, address),
    // The kernel removes secondary addresses of a network together with the first.
    Errno.EADDRNOTAVAIL,
  );
}

/** @param harmless what the kernel answers where it is so already */
function runEach<T>(socket: NetlinkSocket, list: readonly T[], message: (one: T) => Message, harmless: number): void {
  for (const one of list) {
    const [refusal] = socket.batch([message(one)]);
    if (refusal !== undefined && !isErrno(refusal, harmless)) throw refusal;
  }
}

function requireSingle({ dst, indexes }: WholeRoute, { name }: Link): void {
  if (indexes.length === 1) return;
  throw new CniError(
    CniCode.interfaceFailure,
    `Cannot move the routes of "${name}": the one to "${formatCidr(dst)}" leads out by ${indexes.length} ways, wanted one`,
  );
}
