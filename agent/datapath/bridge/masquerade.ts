import { execa } from "execa";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, firstOf, formatIp } from "../../../shared/ip.ts";
import type { BridgeNetwork } from "./options.ts";

/** One table per bridge, so that agents with different bridges on one node leave each other alone. */
export const masqueradeTable = (network: BridgeNetwork): string => `pipette-${network.bridge}`;

const block = (subnet: Cidr): string => `${formatIp(firstOf(subnet))}/${subnet.prefix}`;

/** What leaves the network for anywhere but the network itself and multicast groups gets the node's address. */
function rule(network: BridgeNetwork, subnet: Cidr): string {
  const [protocol, multicast] = subnet.ip.family === 4 ? ["ip", "224.0.0.0/4"] : ["ip6", "ff00::/8"];
  const addresses = `${protocol} saddr ${block(subnet)} ${protocol} daddr != { ${block(subnet)}, ${multicast} }`;
  return `${addresses} oifname != "${network.bridge}" masquerade`;
}

/** Replaces the network's table in one transaction, or takes it away where nothing is to be masqueraded. */
export function masqueradeRules(network: BridgeNetwork): string {
  const table = `table inet ${masqueradeTable(network)}`;
  // Declaring a table first makes its deletion succeed in any case.
  const lines = [table, `delete ${table}`];
  if (network.masquerade && network.subnets.length > 0) {
    const rules = network.subnets.map((subnet) => `    ${rule(network, subnet)};`);
    lines.push(`${table} {`, "  chain postrouting {");
    lines.push("    type nat hook postrouting priority srcnat; policy accept;", ...rules, "  }", "}");
  }
  return `${lines.join("\n")}\n`;
}

/**
 * Loads the rules of all networks with one run of `nft`. They speak of subnets, so no pod changes them.
 * @throws {CniError} 102 with what `nft` said
 */
export async function installMasquerade(networks: readonly BridgeNetwork[]): Promise<void> {
  const input = networks.map(masqueradeRules).join("");
  const done = await execa("nft", ["-f", "-"], { input, reject: false });
  if (!done.failed) return;
  const isAbsent = done.code === "ENOENT";
  // Without the program there are no rules of ours that could be in the way.
  if (isAbsent && networks.every((network) => !network.masquerade)) return;
  const reason = isAbsent ? '"nft" is not installed' : done.stderr.trim() || (done.shortMessage ?? "nft failed");
  throw new CniError(CniCode.interfaceFailure, `Cannot install the masquerade rules: ${reason}, wanted nftables`);
}
