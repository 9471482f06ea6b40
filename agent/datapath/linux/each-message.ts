import { isRefusal, type Message, type NetlinkError, type NetlinkSocket } from "../../protocols/netlink/mod.ts";

/** Requests to the kernel at a time: its answers to more would not fit the socket. */
const atOnce = 100;

/** By the place of the message that the kernel has refused. */
export type Refusals = ReadonlyMap<number, NetlinkError>;

/** Each by itself. @param harmless what the kernel answers where it is so already */
export function runEach(socket: NetlinkSocket, messages: readonly Message[], harmless: number): Refusals {
  const refusals = new Map<number, NetlinkError>();
  for (let at = 0; at < messages.length; at += atOnce) {
    for (const [i, outcome] of socket.batch(messages.slice(at, at + atOnce)).entries())
      if (outcome !== undefined && !isRefusal(outcome, harmless)) refusals.set(at + i, outcome);
  }
  return refusals;
}

/** What cannot be taken away is the node's own trouble, and nobody's record. */
export function throwFirst(refusals: Refusals): void {
  const [first] = refusals.values();
  if (first !== undefined) throw first;
}
