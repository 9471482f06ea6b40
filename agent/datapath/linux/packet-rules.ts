import { CniCode, CniError } from "../../../shared/errors.ts";
import { commandMs, runProgram } from "../../platform/run-program.ts";
import {
  askForChain,
  Errno,
  isRefusal,
  type Kernel,
  type NetlinkSocket,
  readRuleCount,
} from "../../protocols/netlink/mod.ts";
import {
  type GuardedNetwork,
  loopbackRules,
  type MasqueradedNetwork,
  masqueradeRules,
  projectRules,
  projectsOf,
  tunnelRules,
  unforwardedRules,
  unmasqueradedRules,
} from "./packet-chains.ts";

import { rulesProblem } from "./rule-keeper.ts";

/** A network whose pods' packets the node's kernel forwards. */
export type ForwardedNetwork = MasqueradedNetwork & GuardedNetwork;

interface Chain {
  readonly name: string;
  /** Where the kernel asks it, as nftables says it. */
  readonly hook: string;
  /** What its rules look into, as nftables declares it. */
  readonly sets?: readonly string[];
  readonly rules: readonly string[];
}

/** One table per bridge, so that agents with different bridges on one node leave each other alone. */
export const packetTable = ({ bridge }: Pick<ForwardedNetwork, "bridge">): string => `pipette-${bridge}`;

function chainsOf(network: ForwardedNetwork): readonly Chain[] {
  const tunnel = tunnelRules(network);
  return [
    { name: "postrouting", hook: "type nat hook postrouting priority srcnat", rules: masqueradeRules(network) },
    { name: "projects", hook: "type nat hook postrouting priority srcnat - 10", ...projectRules(projectsOf(network)) },
    // What is left of pods' addresses behind all translations, ours and others'.
    { name: "unhidden", hook: "type filter hook postrouting priority srcnat + 10", rules: unmasqueradedRules(network) },
    { name: "unforwarded", hook: "type filter hook forward priority filter", rules: unforwardedRules(network) },
    { name: "loopback", hook: "type filter hook prerouting priority raw", rules: loopbackRules(network) },
    { name: "tunnel-input", hook: "type filter hook input priority filter", rules: tunnel },
    { name: "tunnel-forward", hook: "type filter hook forward priority filter", rules: tunnel },
    // What IPVS has translated is not forwarded: it leaves as if the node had sent it.
    { name: "tunnel-output", hook: "type filter hook postrouting priority filter", rules: tunnel },
  ];
}

/**
 * Replaces the network's chains in one transaction. What else is in the table stays: were the rules about absent pods
 * to go with it, the node would ask for addresses that nobody has until they are back.
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

/** Declaring what is there already changes nothing, and lets the rest succeed where it is not. */
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
 * Loads the rules of all networks with one run of `nft`. They speak of interfaces and subnets, so no pod changes them.
 * @returns where there is no `nft`, and pods have a network without it all the same: what they are not kept from
 * @throws {CniError} 102 with what `nft` said
 */
export async function installPacketRules(networks: readonly ForwardedNetwork[]): Promise<string | undefined> {
  const rules = networks.map(packetRules).join("");
  let refusal = await load(rules);
  // Chains or sets of the same names that are others, from somebody else or another release, are in the way.
  if (refusal?.isAbsent === false) refusal = await load([...networks.flatMap(emptied), rules].join("\n"));
  if (refusal === undefined) return undefined;
  // Without the program there are no rules of ours that could be in the way.
  if (refusal.isAbsent && networks.every((each) => masqueradeRules(each).length === 0 && each.multitenant !== true))
    return 'the node has no packet rules, as "nft" is not installed: pods may reach what the node serves to itself alone';
  throw cannot("install", refusal.reason);
}

/** Takes the rules of these networks away. @throws {CniError} 102 with what `nft` said */
export async function removePacketRules(networks: readonly Pick<ForwardedNetwork, "bridge">[]): Promise<void> {
  const refusal = await load(networks.flatMap(emptied).join("\n"));
  if (refusal !== undefined && !refusal.isAbsent) throw cannot("remove", refusal.reason);
}

interface Refusal {
  readonly reason: string;
  /** There is no such program. */
  readonly isAbsent: boolean;
}

async function load(input: string): Promise<Refusal | undefined> {
  const { failure, stderr, isAbsent } = await runProgram("nft", ["-f", "-"], {
    input: `${input}\n`,
    deadlineMs: commandMs,
  });
  if (failure === "") return undefined;
  return { reason: [failure, stderr.trim()].filter((text) => text !== "").join(": "), isAbsent };
}

const cannot = (what: string, reason: string): CniError =>
  new CniError(CniCode.interfaceFailure, `Cannot ${what} the packet rules: ${reason}, wanted nftables`);

/**
 * What is missing of the rules, as after somebody loaded rules of their own with `flush ruleset`. They are counted, by
 * the kernel's own word: this is asked again and again, and `nft` is a process.
 */
export function missingPacketRules(kernel: Kernel, networks: readonly ForwardedNetwork[]): readonly string[] {
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
    if (isRefusal(caught, Errno.ENOENT)) return 0;
    throw caught;
  }
}
