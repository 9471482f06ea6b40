import { Family, Iff, Ifla, MessageType } from "./constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import { Nfta, subsystem } from "./nftables/numbers.ts";

/** The content of a multicast message of the kernel. */
export type Change =
  | {
      readonly t: "link";
      readonly index: number;
      /** `gone`: deleted; `left`: its bridge, that is, and stays otherwise. */
      readonly is: "up" | "down" | "gone" | "left";
      /** Read on demand, since most messages are about interfaces that are up. */
      group(): number | undefined;
    }
  | { readonly t: "address-gone"; readonly index: number }
  | { readonly t: "route-gone"; readonly protocol: number }
  /** For one interface or all; settings of a new interface are not reported. */
  | { readonly t: "forwarding-off" }
  | { readonly t: "packet-rules"; readonly table: string };

/** `undefined` for messages of other kinds. @throws {MalformedMessage} */
export function readChange(message: RawMessage): Change | undefined {
  switch (message.type) {
    case MessageType.NEWLINK:
    case MessageType.DELLINK:
      return readLinkChange(message);
    case MessageType.DELADDR:
      return { t: "address-gone", index: fixedHeader(message.body, 8).view.getUint32(4, true) };
    case MessageType.DELROUTE:
      return { t: "route-gone", protocol: fixedHeader(message.body, 12).view.getUint8(5) };
    case MessageType.NEWNETCONF:
      return readForwardingOff(message);
    default:
      return (message.type & 0xff00) === subsystem ? readRulesChange(message) : undefined;
  }
}

function readLinkChange({ type, body }: RawMessage): Change | undefined {
  const { view, rest } = fixedHeader(body, 16);
  const isGone = type === MessageType.DELLINK;
  const isOfBridge = view.getUint8(0) === Family.BRIDGE;
  // A change of a port is also reported for its interface.
  if (isOfBridge && !isGone) return undefined;
  const isUp = (view.getUint32(8, true) & Iff.UP) !== 0;
  return {
    t: "link",
    index: view.getInt32(4, true),
    is: isOfBridge ? "left" : isGone ? "gone" : isUp ? "up" : "down",
    group: () => new Attributes(rest).u32(Ifla.GROUP),
  };
}

/** Of a table, and of all that lies in one: its name comes first in each. */
function readRulesChange({ body }: RawMessage): Change {
  return { t: "packet-rules", table: new Attributes(fixedHeader(body, 4).rest).text(Nfta.TABLE_NAME) ?? "" };
}

/** linux/netconf.h */
const Netconfa = { FORWARDING: 2, PROXY_NEIGH: 5 } as const;

/** A setting that is written is told alone, those of a new interface all together. */
function readForwardingOff({ body }: RawMessage): Change | undefined {
  const attributes = new Attributes(fixedHeader(body, 4).rest);
  const isOff = attributes.u32(Netconfa.FORWARDING) === 0 && attributes.u32(Netconfa.PROXY_NEIGH) === undefined;
  return isOff ? { t: "forwarding-off" } : undefined;
}
