import type { Ip } from "../../shared/ip.ts";
import { parseAlias } from "../datapath/veth/alias.ts";
import { allLinks, linkGroup, linkOrNone } from "../datapath/veth/host-links.ts";
import { Kernel, type Link, listAddresses, NetlinkError, type NetlinkSocket, readAddress } from "../netlink/mod.ts";
import type { HalfMade, SeenInterface } from "./sight.ts";

/** What the kernel has of ours, in the calling thread's network namespace. @throws {NetlinkError} */
export function lookAtKernel(): {
  readonly interfaces: readonly SeenInterface[];
  readonly halfMade: readonly HalfMade[];
} {
  using kernel = new Kernel();
  using socket = kernel.openSocket();
  const interfaces: SeenInterface[] = [];
  const halfMade: HalfMade[] = [];
  for (const link of allLinks(socket)) {
    const { name, index, group } = link;
    const alias = parseAlias(link.alias);
    if (group === linkGroup.arriving) halfMade.push({ name, index, state: "arriving" });
    else if (group === linkGroup.leaving) halfMade.push({ name, index, state: "leaving" });
    else if (alias !== undefined)
      interfaces.push({ ...alias, hostIfname: name, index, mtu: link.mtu, addresses: addressesBehind(socket, link) });
  }
  return { interfaces, halfMade };
}

/** Of the other end. `undefined` where it has gone since, or its namespace has. */
function addressesBehind(socket: NetlinkSocket, { peerIndex, peerNamespaceId }: Link): readonly Ip[] | undefined {
  if (peerIndex === undefined || peerNamespaceId === undefined) return undefined;
  try {
    if (linkOrNone(socket, { index: peerIndex }, peerNamespaceId) === undefined) return undefined;
    return socket
      .dump(listAddresses(peerIndex, peerNamespaceId), readAddress)
      .flatMap(({ index, address }) => (index === peerIndex ? [address.ip] : []));
  } catch (caught) {
    if (caught instanceof NetlinkError) return undefined;
    throw caught;
  }
}
