import type { Link } from "../../protocols/netlink/mod.ts";
import { differs } from "../linux/compare.ts";

/** The host's end: up and a port of the bridge. */
export function compareHostEnd(link: Link, bridge: Link): void {
  const what = `the node's interface "${link.name}"`;
  if (!link.up) throw differs(what, "down", "up");
  if (link.master !== bridge.index) {
    const is = link.master === 0 ? "no bridge port" : `a port of interface ${link.master}`;
    throw differs(what, is, `a port of the bridge "${bridge.name}"`);
  }
}
