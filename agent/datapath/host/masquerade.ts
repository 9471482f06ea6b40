import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, contains, firstOf, formatIp, type Ip, ipOf } from "../../../shared/ip.ts";
import { limits } from "../../../shared/limits.ts";
import { askForChain, Errno, isRefusal, type Kernel, type NetlinkSocket, readRuleCount } from "../../netlink/mod.ts";
import { runProgram } from "../../run-program.ts";
import { masqueradeProblem } from "./masquerade-problem.ts";

/** A network whose pods may be hidden behind the node. */
export interface MasqueradedNetwork {
  /** Interface that leads to its pods. */
  readonly bridge: string;
  readonly subnets: readonly Cidr[];
  readonly masquerade: boolean;
  /** Where its pods go under their own addresses, beside their own subnets. */
  readonly exempt?: readonly Cidr[];
  /** Of the node's own making, without meaning anywhere else: hidden behind the node wherever they go. */
  readonly hidden?: readonly Ip[];
}

/** One table per bridge, so that agents with different bridges on one node leave each other alone. */
export const masqueradeTable = (network: Pick<MasqueradedNetwork, "bridge">): string => `pipette-${network.bridge}`;

const chain = "postrouting";

const block = (subnet: Cidr): string => `${formatIp(firstOf(subnet))}/${subnet.prefix}`;

/** nftables refuses a set with a block inside another. */
const minimal = (blocks: readonly Cidr[]): readonly Cidr[] =>
  blocks.filter(
    (one, i) =>
      !blocks.some(
        (other, k) =>
          k !== i && contains(other, one.ip) && (other.prefix < one.prefix || (other.prefix === one.prefix && k < i)),
      ),
  );

const multicast = {
  4: { ip: ipOf(4, 0xe000_0000n), prefix: 4 },
  6: { ip: ipOf(6, 0xffn << 120n), prefix: 8 },
} as const;

/** What leaves the network for anywhere but itself, what is exempt and multicast groups gets the node's address. */
function rule(network: MasqueradedNetwork, subnet: Cidr): string {
  const { family } = subnet.ip;
  const protocol = family === 4 ? "ip" : "ip6";
  const exempt = (network.exempt ?? []).filter(({ ip }) => ip.family === family);
  const kept = minimal([subnet, ...exempt, multicast[family]]).map(block);
  const addresses = `${protocol} saddr ${block(subnet)} ${protocol} daddr != { ${kept.join(", ")} }`;
  return `${addresses} oifname != "${network.bridge}" masquerade`;
}

const hidingRule = ({ bridge }: MasqueradedNetwork, ip: Ip): string =>
  `${ip.family === 4 ? "ip" : "ip6"} saddr ${formatIp(ip)} oifname != "${bridge}" masquerade`;

const rulesOf = (network: MasqueradedNetwork): readonly string[] => [
  ...(network.masquerade ? network.subnets.map((subnet) => rule(network, subnet)) : []),
  ...(network.hidden ?? []).map((ip) => hidingRule(network, ip)),
];

/** Replaces the network's table in one transaction, or takes it away where nothing is to be masqueraded. */
export function masqueradeRules(network: MasqueradedNetwork): string {
  const table = `table inet ${masqueradeTable(network)}`;
  // Declaring a table first makes its deletion succeed in any case.
  const lines = [table, `delete ${table}`];
  const rules = rulesOf(network).map((text) => `    ${text};`);
  if (rules.length > 0) {
    lines.push(`${table} {`, `  chain ${chain} {`);
    lines.push("    type nat hook postrouting priority srcnat; policy accept;", ...rules, "  }", "}");
  }
  return `${lines.join("\n")}\n`;
}

/**
 * Loads the rules of all networks with one run of `nft`. They speak of subnets, so no pod changes them.
 * @throws {CniError} 102 with what `nft` said
 */
export async function installMasquerade(networks: readonly MasqueradedNetwork[]): Promise<void> {
  const input = networks.map(masqueradeRules).join("");
  const done = await runProgram("nft", ["-f", "-"], { input, deadlineMs: limits.hostCommandMs });
  if (done.failure === "") return;
  // Without the program there are no rules of ours that could be in the way.
  if (done.isAbsent && networks.every(({ masquerade, hidden = [] }) => !masquerade && hidden.length === 0)) return;
  const reason = [done.failure, done.stderr.trim()].filter((text) => text !== "").join(": ");
  throw new CniError(CniCode.interfaceFailure, `Cannot install the masquerade rules: ${reason}, wanted nftables`);
}

/**
 * What is missing of the rules, as after somebody loaded rules of their own with `flush ruleset`. They are counted, by
 * the kernel's own word: this is asked again and again, and `nft` is a process.
 */
export function missingMasquerade(kernel: Kernel, networks: readonly MasqueradedNetwork[]): readonly string[] {
  const masked = networks.filter((network) => rulesOf(network).length > 0);
  if (masked.length === 0) return [];
  using socket = kernel.openPacketFilterSocket();
  return masked.flatMap((network) => {
    const wanted = rulesOf(network).length;
    const found = countRules(socket, masqueradeTable(network));
    if (found === wanted) return [];
    return [masqueradeProblem(found, wanted, masqueradeTable(network))];
  });
}

function countRules(socket: NetlinkSocket, table: string): number {
  try {
    return socket.get(askForChain(table, chain), readRuleCount);
  } catch (caught) {
    if (isRefusal(caught, Errno.ENOENT)) return 0;
    throw caught;
  }
}
