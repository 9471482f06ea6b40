import { Errno, errnoName } from "../protocols/netlink/mod.ts";

const reasons = new Map<number, string>([
  [Errno.ENETUNREACH, "this node has no route to it"],
  [Errno.EHOSTUNREACH, "the next hop does not answer, or says that it cannot be reached"],
  [Errno.EHOSTDOWN, "the next hop is down"],
  [Errno.ENETDOWN, "this node's interface to its pods is down"],
  [Errno.EPERM, "a packet rule of this node refuses it"],
  [Errno.EACCES, "a packet rule or route of this node refuses it"],
  [Errno.ECONNREFUSED, "something on the way refuses it"],
  [Errno.ENOKEY, "WireGuard has no key of it on this node"],
  [Errno.EDESTADDRREQ, "WireGuard does not know on this node where it is"],
  // What "bind" says.
  [Errno.EADDRNOTAVAIL, "this node lacks the gateway address of its own pods"],
]);

/** Why the kernel, or a router by way of it, refuses a question. */
export const refusalReason = (errno: number): string => reasons.get(errno) ?? `the kernel says ${errnoName(errno)}`;

export const nothingComesBack = "nothing comes back";
