import { networkInterfaces } from "node:os";
import { formatIp } from "../../../shared/net/ip.ts";
import type { AgentConfig } from "../../config/agent-config.ts";

/** A sentence for each network of HNS whose node address no adapter of this machine has: its agent would wait for it. */
export function addressWarnings({ networks }: AgentConfig): readonly string[] {
  const held = ownAddresses();
  return networks.flatMap(({ name, hns }) => {
    const wanted = hns === undefined ? undefined : formatIp(hns.nodeAddress);
    if (wanted === undefined || held.some(({ ip }) => ip === wanted)) return [];
    return [
      `no adapter of this machine has ${wanted}, which network "${name}" goes out by (--node-address): ${inWords(held)}`,
    ];
  });
}

/** What an operator can choose from. */
export const addressesToGive = (): string => inWords(ownAddresses());

const inWords = (held: readonly { readonly ip: string; readonly on: string }[]): string =>
  held.length === 0 ? "it has none" : `it has ${held.map(({ ip, on }) => `${ip} on "${on}"`).join(", ")}`;

const ownAddresses = (): readonly { readonly ip: string; readonly on: string }[] =>
  Object.entries(networkInterfaces()).flatMap(([on, entries = []]) =>
    entries.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address: ip }) => ({ ip, on })),
  );
