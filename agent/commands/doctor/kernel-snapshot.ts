import { linkGroup, listAllLinks, peerAddresses } from "../../datapath/linux/host-links.ts";
import { parseAlias } from "../../datapath/linux/names.ts";
import { Kernel } from "../../protocols/netlink/mod.ts";
import type { HalfMade, SeenInterface } from "./node-snapshot.ts";

/** Our interfaces in the kernel, in the calling thread's network namespace. @throws {NetlinkError} */
export function kernelSnapshot(): {
  readonly interfaces: readonly SeenInterface[];
  readonly halfMade: readonly HalfMade[];
} {
  using kernel = new Kernel();
  using socket = kernel.openSocket();
  const interfaces: SeenInterface[] = [];
  const halfMade: HalfMade[] = [];
  for (const link of listAllLinks(socket)) {
    const { name, index, group } = link;
    const alias = parseAlias(link.alias);
    if (group === linkGroup.beingMade) halfMade.push({ name, index, state: "arriving" });
    else if (group === linkGroup.toDelete) halfMade.push({ name, index, state: "leaving" });
    else if (alias !== undefined)
      interfaces.push({
        ...alias,
        hostIfname: name,
        index,
        mtu: link.mtu,
        addresses: peerAddresses(socket, link)?.map(({ address }) => address.ip),
      });
  }
  return { interfaces, halfMade };
}
