/**
 * rtnetlink, spoken directly: requests and answers, sockets in this and in other network namespaces.
 * No policy: what to make of it is the data paths'. Linux only; `bun:ffi` is used in `libc.ts` alone.
 */
export { addAddress, type LinkAddress, listAddresses, readAddress, removeAddress } from "./address.ts";
export { Errno } from "./errno.ts";
export { Kernel } from "./kernel.ts";
export {
  addAltName,
  announceIpv4,
  createBridge,
  createVeth,
  deleteLinksOfGroup,
  getLink,
  type Link,
  type LinkKey,
  listLinks,
  readLink,
  setHairpin,
  setLink,
} from "./link.ts";
export type { Message } from "./message-writer.ts";
export { type NetworkNamespace, SetnsError } from "./namespace.ts";
export { addressesInNamespaces, type BareNamespace, bareNamespaces } from "./namespace-addresses.ts";
export { getNamespaceId, readNamespaceId } from "./namespace-id.ts";
export { declareNeighbour, forgetNeighbour, listNeighbours, readNeighbour } from "./neighbour.ts";
export { isRefusal, NetlinkError } from "./netlink-error.ts";
export type { NetlinkSocket } from "./netlink-socket.ts";
export { addRoute, deleteRoute, listRoutes, type Route, readRoute } from "./route.ts";
export { addRouteBy, deleteRouteBy, readWholeRoute, type WholeRoute, waysOf } from "./route-move.ts";
export { askForChain, readRuleCount } from "./rule-count.ts";
