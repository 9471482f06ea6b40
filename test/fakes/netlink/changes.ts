import { Family, Iff, Ifla, MessageType } from "../../../agent/protocols/netlink/constants.ts";
import type { RawMessage } from "../../../agent/protocols/netlink/message-reader.ts";
import { Nfta, NftMessage } from "../../../agent/protocols/netlink/nftables/numbers.ts";
import { framed } from "./messages.ts";

/** What the kernel says to everybody of an interface, an address, a route or packet rules, as its multicast messages have it. */

interface LinkState {
  readonly isUp?: boolean;
  readonly group?: number;
}

const linkMessage = (type: number, family: number, index: number, { isUp = false, group = 0 }: LinkState): RawMessage =>
  framed(type, (writer) => {
    const flags = isUp ? Iff.UP : 0;
    writer.u8x4(family).u32(index).u32(flags).u32(0).attrU32(Ifla.GROUP, group);
  });

export const linkChanged = (index: number, state: LinkState): RawMessage =>
  linkMessage(MessageType.NEWLINK, 0, index, state);
export const linkGone = (index: number, state: LinkState = {}): RawMessage =>
  linkMessage(MessageType.DELLINK, 0, index, state);
/** A port has left its bridge, and stays otherwise. */
export const portLeft = (index: number): RawMessage => linkMessage(MessageType.DELLINK, Family.BRIDGE, index, {});

export const addressGone = (index: number): RawMessage =>
  framed(MessageType.DELADDR, (writer) => void writer.u32(0).u32(index));

export const routeGone = (protocol: number): RawMessage =>
  framed(MessageType.DELROUTE, (writer) => void writer.u32(0).u8x4(0, protocol).u32(0));

/** NETCONFA_FORWARDING of linux/netconf.h. */
const forwardingAttribute = 2;
export const forwardingSet = (value: number): RawMessage =>
  framed(MessageType.NEWNETCONF, (writer) => void writer.u32(0).attrU32(forwardingAttribute, value));

export const tableGone = (table: string): RawMessage =>
  framed(NftMessage.DELTABLE, (writer) => void writer.u32(0).attrText(Nfta.TABLE_NAME, table));
