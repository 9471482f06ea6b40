import type { Link } from "../../protocols/netlink/mod.ts";
import { differs } from "../linux/compare.ts";
import type { ConnectedPod } from "./options.ts";

/** The host's end: up, and a port that the switch has made of this very device. */
export function comparePort(link: Link, pod: ConnectedPod | undefined, bridge: string): void {
  const what = `the node's interface "${link.name}"`;
  if (!link.up) throw differs(what, "down", "up");
  if (pod === undefined || pod.port !== link.name) throw differs(what, "no port", `a port of the bridge "${bridge}"`);
  if (pod.device !== String(link.index)) throw differs(what, "another than the port was made of", "the same");
  if (pod.ofport === undefined) throw differs(what, `no port of the switch (${pod.problem ?? "not made yet"})`, "one");
}
