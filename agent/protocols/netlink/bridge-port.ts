import { formatMac } from "../../../shared/net/mac.ts";
import { Family, Flag, Ifla, MessageType, Nda, Ntf, Nud } from "./constants.ts";
import { ifinfo } from "./link.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message } from "./message-writer.ts";
import { ndmsg } from "./neighbour.ts";

/** 01:80:c2:00:00:00 to :0f by their last four bits, but for pause frames (:01), which no bridge lets through. */
const bridgeGroups = 0xfffd;

/**
 * Configures a bridge port for an untrusted pod: no MAC learning, no flooding of unknown MACs to it, no STP or
 * multicast router role, and, if the kernel supports it (5.18), only frames of its declared MACs. Frames for reserved
 * bridge groups are forwarded like others, so that packet rules see them: otherwise LLDP's group would bypass all rules
 * and reach the node's kernel. Kernels ignore options that they do not know.
 */
export function setPodPort(what: string, index: number, { hairpin }: { readonly hairpin: boolean }): Message {
  return {
    action: () => `set the bridge port options of "${what}"`,
    type: MessageType.NEWLINK,
    body: (writer) => {
      ifinfo(writer, index)
        .begin(Ifla.LINKINFO)
        .attrName(Ifla.INFO_SLAVE_KIND, "bridge")
        .begin(Ifla.INFO_SLAVE_DATA)
        .attrU8(Ifla.BRPORT_MODE, hairpin ? 1 : 0)
        .attrU8(Ifla.BRPORT_GUARD, 1)
        .attrU8(Ifla.BRPORT_LEARNING, 0)
        .attrU8(Ifla.BRPORT_UNICAST_FLOOD, 0)
        .attrU8(Ifla.BRPORT_MULTICAST_ROUTER, 0)
        .attrU16(Ifla.BRPORT_GROUP_FWD_MASK, bridgeGroups)
        .attrU8(Ifla.BRPORT_LOCKED, 1)
        .end()
        .end();
    },
  };
}

/**
 * Declares that a MAC is behind a port of a bridge, whatever the bridge has learnt or learns at other ports. It goes when
 * the port leaves.
 */
export function addPortMac(what: string, index: number, mac: Uint8Array): Message {
  return {
    action: () => `declare the hardware address "${formatMac(mac)}" on the port "${what}"`,
    type: MessageType.NEWNEIGH,
    flags: Flag.CREATE | Flag.REPLACE,
    body: (writer) =>
      ndmsg(writer, Family.BRIDGE, index, Nud.NOARP, Ntf.MASTER | Ntf.STICKY).attrBytes(Nda.LLADDR, mac),
  };
}

/** Every MAC that a bridge knows. The answer holds other bridges' too where the kernel does not filter. */
export function listPortMacs(bridge: number): Message {
  return {
    action: () => "list the hardware addresses of a bridge",
    type: MessageType.GETNEIGH,
    body: (writer) => ndmsg(writer, Family.BRIDGE, 0, 0).attrU32(Nda.MASTER, bridge),
  };
}

/** Index of a port and a MAC that was declared on it; `undefined` for one that was learnt, or is the bridge's own. @throws {MalformedMessage} */
export function readPortMac(message: RawMessage): readonly [port: number, mac: Uint8Array] | undefined {
  const { view, rest } = fixedHeader(message.body, 12);
  const mac = new Attributes(rest).bytes(Nda.LLADDR);
  if (view.getUint8(0) !== Family.BRIDGE || (view.getUint16(8, true) & Nud.NOARP) === 0) return undefined;
  return mac === undefined ? undefined : [view.getUint32(4, true), mac.slice()];
}
