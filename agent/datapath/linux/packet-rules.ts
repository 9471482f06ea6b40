import {
  askForChain,
  Errno,
  isErrno,
  type Kernel,
  type NetlinkSocket,
  readRuleCount,
} from "../../protocols/netlink/mod.ts";
import {
  type GuardedNetwork,
  loopbackRules,
  type MasqueradedNetwork,
  masqueradeRules,
  nodePortRules,
  ownSourceRules,
  projectRules,
  projectsOf,
  refusedRules,
  type SwitchedServices,
  serviceSets,
  tunnelRules,
  unforwardedRules,
  unmasqueradedRules,
} from "./packet-chains.ts";

import { loadScript, refused } from "./packet-rule-script.ts";
import { rulesProblem, stillMissing } from "./rule-keeper.ts";

/** A network whose pods' packets the node's kernel forwards. */
export type ForwardedNetwork = MasqueradedNetwork & GuardedNetwork & { readonly services?: SwitchedServices };

interface Chain {
  readonly name: string;
  /** The chain's hook, in nftables' syntax. */
  readonly hook: string;
  /** The sets that its rules use, in nftables' syntax. */
  readonly sets?: readonly string[];
  readonly rules: readonly string[];
}

/** One table per bridge, so that agents with different bridges on one node leave each other alone. */
export const packetTable = ({ bridge }: Pick<ForwardedNetwork, "bridge">): string => `pipette-${bridge}`;

function chainsOf(network: ForwardedNetwork): readonly Chain[] {
  const tunnel = tunnelRules(network);
  const { services } = network;
  const nodePorts = services === undefined ? [] : nodePortRules(services);
  const refused = services === undefined ? [] : refusedRules(services);
  return [
    { name: "postrouting", hook: "type nat hook postrouting priority srcnat", rules: masqueradeRules(network) },
    { name: "projects", hook: "type nat hook postrouting priority srcnat - 10", ...projectRules(projectsOf(network)) },
    // Runs after all source translations, ours and others'.
    { name: "unhidden", hook: "type filter hook postrouting priority srcnat + 10", rules: unmasqueradedRules(network) },
    { name: "unforwarded", hook: "type filter hook forward priority filter", rules: unforwardedRules(network) },
    { name: "loopback", hook: "type filter hook prerouting priority raw", rules: loopbackRules(network) },
    { name: "tunnel-input", hook: "type filter hook input priority filter", rules: tunnel },
    { name: "tunnel-forward", hook: "type filter hook forward priority filter", rules: tunnel },
    // Packets that IPVS has translated are not forwarded but leave as the node's own.
    { name: "tunnel-output", hook: "type filter hook postrouting priority filter", rules: tunnel },
    {
      name: "node-ports",
      hook: "type nat hook prerouting priority dstnat",
      sets: services === undefined ? [] : serviceSets,
      rules: nodePorts,
    },
    { name: "node-ports-output", hook: "type nat hook output priority -100", rules: nodePorts },
    {
      name: "node-ports-source",
      hook: "type nat hook postrouting priority srcnat - 10",
      rules: services === undefined ? [] : ownSourceRules(services),
    },
    { name: "refused-forward", hook: "type filter hook forward priority filter", rules: refused },
    { name: "refused-output", hook: "type filter hook output priority filter", rules: refused },
  ];
}

/**
 * Replaces the network's chains in one transaction. The rest of the table stays: without the rules about absent pods
 * the node would send ARP for unused addresses meanwhile.
 */
export function packetRules(network: ForwardedNetwork): string {
  const table = `inet ${packetTable(network)}`;
  const chains = chainsOf(network);
  const wanted = chains.filter(({ rules }) => rules.length > 0);
  return [
    `table ${table}`,
    ...chains.flatMap((chain) => emptiedChain(table, chain)),
    `table ${table} {`,
    ...wanted.flatMap(({ name, sets = [], rules }) => [
      ...sets.map((text) => `  ${text}`),
      `  chain ${name} {`,
      ...rules.map((text) => `    ${text};`),
      "  }",
    ]),
    "}",
    "",
  ].join("\n");
}

/** Declaring an existing object changes nothing, and lets the following commands succeed if it is missing. */
function emptiedChain(table: string, { name, hook, rules }: Chain): readonly string[] {
  const chain = `chain ${table} ${name}`;
  if (rules.length === 0) return [`add ${chain}`, `flush ${chain}`, `delete ${chain}`];
  return [`add ${chain} { ${hook}; policy accept; }`, `flush ${chain}`];
}

/** Declaring a table first makes its deletion succeed in any case. */
function emptied(network: Pick<ForwardedNetwork, "bridge">): readonly string[] {
  const table = `table inet ${packetTable(network)}`;
  return [table, `delete ${table}`];
}

/**
 * Loads the rules of all networks with one run of `nft`. They refer to interfaces and subnets, so they do not depend on
 * pods.
 * @returns if there is no `nft` and pods can work without it: what they are not kept from
 * @throws {CniError} 102 with what `nft` said
 */
export async function installPacketRules(networks: readonly ForwardedNetwork[]): Promise<string | undefined> {
  const rules = networks.map(packetRules).join("");
  let refusal = await loadScript([rules]);
  // Different chains or sets of the same names, from another program or release, are in the way.
  if (refusal?.isAbsent === false) refusal = await loadScript([...networks.flatMap(emptied), rules]);
  if (refusal === undefined) return undefined;
  // Without the program there are no rules of ours that could be in the way.
  if (refusal.isAbsent && networks.every((each) => masqueradeRules(each).length === 0 && each.multitenant !== true))
    return 'the node has no packet rules, as "nft" is not installed: pods may reach what the node serves to itself alone';
  throw refused("install the packet rules", refusal);
}

/** Removes the rules of these networks. @throws {CniError} 102 with what `nft` said */
export async function removePacketRules(networks: readonly Pick<ForwardedNetwork, "bridge">[]): Promise<void> {
  const refusal = await loadScript(networks.flatMap(emptied));
  if (refusal !== undefined && !refusal.isAbsent) throw refused("remove the packet rules", refusal);
}

/**
 * What is missing of the rules, as after somebody loaded rules of their own with `flush ruleset`. They are counted by
 * netlink, because this is checked often and `nft` would be a process.
 */
export const missingPacketRules = (kernel: Kernel, networks: readonly ForwardedNetwork[]): Promise<readonly string[]> =>
  stillMissing(() => lackingRules(kernel, networks));

function lackingRules(kernel: Kernel, networks: readonly ForwardedNetwork[]): readonly string[] {
  if (networks.length === 0) return [];
  using socket = kernel.openPacketFilterSocket();
  return networks.flatMap((network) => {
    const table = packetTable(network);
    const chains = chainsOf(network).filter(({ rules }) => rules.length > 0);
    const counts = chains.map(({ name, rules }) => ({
      wanted: rules.length,
      found: countRules(socket, table, name),
    }));
    if (counts.every(({ wanted, found }) => wanted === found)) return [];
    const [wanted, found] = [sum(counts.map((one) => one.wanted)), sum(counts.map((one) => one.found))];
    return [rulesProblem(found, wanted, table)];
  });
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

function countRules(socket: NetlinkSocket, table: string, chain: string): number {
  try {
    return socket.get(askForChain(table, chain), readRuleCount);
  } catch (caught) {
    if (isErrno(caught, Errno.ENOENT)) return 0;
    throw caught;
  }
}
