import { CniCode, CniError } from "../../../shared/errors.ts";
import { isRefusal, type Message, NetlinkError, type NetlinkSocket, SetnsError } from "../../protocols/netlink/mod.ts";

/**
 * What the kernel refused, as the caller of a verb sees it.
 *
 * `action` is what the verb was about, `attach "eth0" of sandbox "abc"`; the kernel's own sentence goes along.
 */
export function interfaceError(action: string, caught: unknown): CniError {
  if (caught instanceof CniError) return caught;
  if (caught instanceof NetlinkError) {
    return new CniError(CniCode.interfaceFailure, `Cannot ${action}: ${harmless(lowerFirst(caught.message))}`, {
      cause: caught,
    });
  }
  // The namespace went away between open and entry, or the agent lacks the privilege.
  if (caught instanceof SetnsError) {
    return new CniError(CniCode.invalidEnvironment, `Cannot ${action}: ${lowerFirst(caught.message)}`, {
      cause: caught,
    });
  }
  return CniError.from(caught, action);
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/** The runtime's library takes these words in a DEL's error for success. */
const harmless = (text: string): string =>
  text.replace(/not found/gi, "absent").replace(/no such file or directory/gi, "absent");

/** Requests to the kernel at a time: its answers to more would not fit the socket. */
const maxPerBatch = 100;

/** By the place of the message that the kernel has refused. */
export type Refusals = ReadonlyMap<number, NetlinkError>;

/** Each by itself. @param harmless what the kernel answers where it is so already */
export function runEach(socket: NetlinkSocket, messages: readonly Message[], harmless: number): Refusals {
  const refusals = new Map<number, NetlinkError>();
  for (let at = 0; at < messages.length; at += maxPerBatch) {
    for (const [i, outcome] of socket.batch(messages.slice(at, at + maxPerBatch)).entries())
      if (outcome !== undefined && !isRefusal(outcome, harmless)) refusals.set(at + i, outcome);
  }
  return refusals;
}

/** What cannot be taken away is the node's own trouble, and nobody's record. */
export function throwFirst(refusals: Refusals): void {
  const [first] = refusals.values();
  if (first !== undefined) throw first;
}
