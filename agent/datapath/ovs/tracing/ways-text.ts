import type { OvsNodeOptions } from "../options.ts";

/** How packets reach other nodes from here, and what a trace shows of that. */
export function waysText({ mode, tunnel, encryption }: Pick<OvsNodeOptions, "mode" | "tunnel" | "encryption">): string {
  const sealed = encryption === "none" ? "" : `, encrypted by ${encryption}`;
  if (encryption === "wireguard") return `${mode}: by the node's kernel, encrypted by WireGuard`;
  switch (mode) {
    case "encap":
      return `encap: by tunnels (${tunnel.type})${sealed}`;
    case "noEncap":
      return "noEncap: by the node's kernel, or by the uplink";
    case "hybrid":
      return `hybrid: by the node's kernel or the uplink on this link, by tunnels (${tunnel.type})${sealed} beyond`;
    case "networkPolicyOnly":
      return "networkPolicyOnly: by the node's kernel, as another plugin routes";
  }
}
