/**
 * rtnetlink and nfnetlink, spoken directly: requests and answers, sockets in this and in other network namespaces.
 * No policy: what to make of it is the data paths'. Linux only; `bun:ffi` is used in `libc.ts` alone.
 */
export { addAddress, type LinkAddress, listAddresses, readAddress, removeAddress } from "./address.ts";
export { addPortMac, listPortMacs, readPortMac, setPodPort } from "./bridge-port.ts";
export { ipBytes, ipFromBytes } from "./bytes.ts";
export { type Change, readChange } from "./change.ts";
export {
  type Connection,
  type ConnectionFilter,
  deleteConnection,
  listConnections,
  readConnection,
} from "./connections.ts";
export { Errno, errnoName } from "./errno.ts";
export { Kernel } from "./kernel.ts";
export { Libc, pinned } from "./libc.ts";
export {
  addAltName,
  createBridge,
  createVeth,
  createWireGuard,
  deleteLink,
  deleteLinksOfGroup,
  getLink,
  type Link,
  type LinkKey,
  listLinks,
  readLink,
  setIpv4Options,
  setLink,
} from "./link.ts";
export { Attributes, fixedHeader, type RawMessage, readAttributes } from "./message-reader.ts";
export { type Message, MessageWriter } from "./message-writer.ts";
export { type NetworkNamespace, SetnsError } from "./namespace.ts";
export { addressesInNamespaces, type BareNamespace, bareNamespaces } from "./namespace-addresses.ts";
export { getNamespaceId, readNamespaceId } from "./namespace-id.ts";
export { declareNeighbour, forgetNeighbour, listNeighbours, readNeighbour } from "./neighbour.ts";
export { isErrno, NetlinkError } from "./netlink-error.ts";
export type { NetlinkSocket } from "./netlink-socket.ts";
export { createCounter, deleteCounter, listCounters, readCounter } from "./nftables/counters.ts";
export {
  addElements,
  askForElement,
  clearSet,
  deleteElements,
  type Element,
  elementOf,
  joined,
  listElements,
  readElementKeys,
  readElements,
} from "./nftables/elements.ts";
export {
  accept,
  among,
  compare,
  connectionFields,
  constant,
  counter,
  countIn,
  destinationKind,
  destinationKindAtNode,
  drop,
  type Expression,
  type Field,
  hasExtensionHeader,
  inputInterface,
  inputInterfaceGroup,
  inputInterfaceName,
  isOfNoConnection,
  isTranslated,
  jumpBy,
  jumpTo,
  loads,
  masked,
  networkFamily,
  notAmong,
  opensConnection,
  outputInterface,
  outputInterfaceName,
  packetMark,
  packetPriority,
  payload,
  rejectAsAbsent,
  rejectAsClosed,
  reportTo,
  reset,
  sendToNode,
  sourceKind,
  upperProtocol,
} from "./nftables/expressions.ts";
export {
  appendRule,
  askForChain,
  clearChain,
  createChain,
  createSet,
  createTable,
  deleteChain,
  deleteSet,
  deleteTable,
  type Hook,
  listRules,
  listSets,
  type PacketSet,
  type Rule,
  readChainOfRule,
  readRuleCount,
  readSetName,
  type Table,
} from "./nftables/objects.ts";
export { type Report, readReport } from "./nftables/reports.ts";
export {
  forget,
  jumpByRegisters,
  keepFor,
  leadTo,
  lookUp,
  markWith,
  masquerade,
  randomBelow,
  setPriority,
} from "./nftables/translation.ts";
export { addRoute, deleteRoute, listRoutes, type Route, readRoute } from "./route.ts";
export { addRouteBy, deleteRouteBy, readWholeRoute, type WholeRoute, waysOf } from "./route-move.ts";
export { sysctlPath } from "./sysctl-path.ts";
