import type { Fields } from "../schema/json-fields.ts";

/**
 * Where the addresses of a configuration come from: the ranges of its `ipam` section (`own`), another IPAM
 * plugin (`delegated`), or the ranges of the agent's own configuration (`agent`: no `ipam`, or one without a type).
 */
export type IpamKind = "own" | "delegated" | "agent";

export function ipamKind(conf: Fields): IpamKind {
  const type = conf.object("ipam")?.string("type") ?? "";
  if (type === "") return "agent";
  return type === "pipette-ipam" || type === "pipette" ? "own" : "delegated";
}
