import type { Link } from "../../protocols/netlink/mod.ts";
import { mismatch } from "../linux/compare.ts";
import type { ConnectedPod } from "./options.ts";

/** The host's end: up, and a port that the switch has made of this very device. */
export function comparePort(link: Link, pod: ConnectedPod | undefined, bridge: string): void {
  const what = `the node's interface "${link.name}"`;
  if (!link.up) throw mismatch(what, "down", "up");
  if (pod === undefined || pod.port !== link.name) throw mismatch(what, "no port", `a port of the bridge "${bridge}"`);
  if (pod.device !== String(link.index)) throw mismatch(what, "another than the port was made of", "the same");
  if (pod.ofport === undefined) throw mismatch(what, `no port of the switch (${pod.problem ?? "not made yet"})`, "one");
}
