import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Message, NetlinkError, type NetlinkSocket, SetnsError } from "../../protocols/netlink/mod.ts";

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

/** Rewords "not found", which the runtime's library takes for success in a DEL's error. */
const harmless = (text: string): string =>
  text.replace(/not found/gi, "absent").replace(/no such file or directory/gi, "absent");

/** Requests to the kernel at a time: its answers to more would not fit the socket. */
const maxPerBatch = 100;

/** Errors by the index of the refused message. */
export type Refusals = ReadonlyMap<number, NetlinkError>;

/** Runs each message separately. @param harmless what the kernel answers where it is so already, beside a message's own */
export function runEach(socket: NetlinkSocket, messages: readonly Message[], harmless?: number): Refusals {
  const refusals = new Map<number, NetlinkError>();
  for (let at = 0; at < messages.length; at += maxPerBatch) {
    for (const [i, outcome] of socket.batch(messages.slice(at, at + maxPerBatch)).entries())
      if (outcome !== undefined && outcome.errno !== harmless) refusals.set(at + i, outcome);
  }
  return refusals;
}

/** Throws the first refusal, if there is one. */
export function throwFirst(refusals: Refusals): void {
  const [first] = refusals.values();
  if (first !== undefined) throw first;
}
