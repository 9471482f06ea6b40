import { type Action, move, output, Port, resubmit, setField, whole } from "../../../protocols/openflow/mod.ts";
import { virtualMac } from "./registers.ts";
import { tables } from "./tables.ts";

/** Types of neighbour discovery: router solicitation and advertisement, neighbour likewise, redirect (RFC 4861). */
export const solicitation = 135;
export const advertisement = 136;
export const discovery = [133, 134, solicitation, advertisement, 137] as const;

/** The option that holds the target's MAC; in a solicitation the sender's is in its place, as option 1 (RFC 4861, 4.6.1). */
const targetMac = 2;
/** Flags of an advertisement (4.4): solicited, and overrides earlier entries. */
const solicitedOverride = 0x60000000;
const fromRouter = 0x80000000;

/** The holder of the requested address. */
export interface Holder {
  readonly mac: string;
  readonly isRouter: boolean;
}

/** The virtual MAC, which stands for every other node and the services' virtual host. */
export const virtualHolder: Holder = { mac: virtualMac, isRouter: true };

/**
 * Turns a solicitation into its answer, sent to the asker alone. The switch allows the target's MAC to be set only in
 * packets that match as advertisements, so `finishAnswer` does that in the same table.
 */
export const answerSolicitation = ({ mac, isRouter }: Holder): readonly Action[] => [
  move(whole("eth_src"), whole("eth_dst")),
  setField("eth_src", mac),
  move(whole("ipv6_src"), whole("ipv6_dst")),
  move(whole("nd_target"), whole("ipv6_src")),
  setField("nd_options_type", targetMac),
  setField("nd_reserved", isRouter ? solicitedOverride + fromRouter : solicitedOverride),
  setField("icmpv6_type", advertisement),
  resubmit(tables.IPv6),
];

export const finishAnswer: readonly Action[] = [move(whole("eth_src"), whole("nd_tll")), output(Port.IN_PORT)];
