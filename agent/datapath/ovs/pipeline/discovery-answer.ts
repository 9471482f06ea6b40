import { type Action, move, output, Port, resubmit, setField, whole } from "../../../protocols/openflow/mod.ts";
import { virtualMac } from "./registers.ts";
import { tables } from "./tables.ts";

/** Types of neighbour discovery: router solicitation and advertisement, neighbour likewise, redirect (RFC 4861). */
export const solicitation = 135;
export const advertisement = 136;
export const discovery = [133, 134, solicitation, advertisement, 137] as const;

/** The option that holds the target's MAC; in a solicitation the sender's is in its place, as option 1 (RFC 4861, 4.6.1). */
const targetMac = 2;
/** Of an advertisement (4.4): it is the answer to a question, and counts for more than what was known. */
const solicitedOverride = 0x60000000;
const fromRouter = 0x80000000;

/** Who is at the address that was asked for. */
export interface Holder {
  readonly mac: string;
  readonly isRouter: boolean;
}

/** A router of the virtual MAC, as every other node and the services' host. */
export const virtualHolder: Holder = { mac: virtualMac, isRouter: true };

/**
 * Turns a solicitation into its answer, which goes to the asker alone. The switch lets the target's MAC be written into
 * what has come to it as an advertisement only, so `finishAnswer` does that, in the same table.
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
