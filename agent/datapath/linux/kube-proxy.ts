import { readFileSync } from "node:fs";
import { askForChain, type NetlinkSocket, readRuleCount } from "../../protocols/netlink/mod.ts";
import { findLink } from "./host-links.ts";
import { interfaceError } from "./kernel-errors.ts";
import { unlessMissing } from "./set-elements.ts";

/** What each of its modes makes in the kernel: family and table of a chain, or an interface. */
const chains = [
  { family: "ip", table: "nat", chain: "KUBE-SERVICES" },
  { family: "ip6", table: "nat", chain: "KUBE-SERVICES" },
  { family: "ip", table: "kube-proxy", chain: "services" },
  { family: "ip6", table: "kube-proxy", chain: "services" },
] as const;
const beside = "kube-proxy seems";
const ipvsInterface = "kube-ipvs0";
/** `healthzBindAddress`, unless it is configured otherwise: the rules of iptables-legacy cannot be seen by netlink. */
const healthPort = 10_256;

/**
 * Whether a kube-proxy balances services on this node too, or its rules do although it has gone, in sentences. Looks
 * into the calling thread's network namespace.
 * @param filters socket for packet filters @param links socket for interfaces
 */
export function kubeProxyBeside(filters: NetlinkSocket, links: NetlinkSocket): readonly string[] {
  try {
    const by = whatBalances(filters, links);
    if (by === undefined) return [];
    return [
      `${beside} to balance services on this node too, by ${by}: take it away with its rules (kube-proxy --cleanup), or set "services.proxyAll" to false`,
    ];
  } catch (caught) {
    return [interfaceError("look for a kube-proxy", caught).message];
  }
}

function whatBalances(filters: NetlinkSocket, links: NetlinkSocket): string | undefined {
  const found = chains.find(({ family, table, chain }) =>
    unlessMissing(false, () => filters.get(askForChain(table, chain, family), readRuleCount) >= 0),
  );
  if (found !== undefined) return `the chain "${found.chain}" of the table "${found.family} ${found.table}"`;
  if (findLink(links, { name: ipvsInterface }) !== undefined) return `the interface "${ipvsInterface}"`;
  return listensOn(healthPort) ? `whoever listens on port ${healthPort}` : undefined;
}

/** Whether a sentence is of these. */
export const isKubeProxyProblem = (problem: string): boolean => problem.startsWith(beside);

/** TCP_LISTEN, of the kernel's list of sockets. */
const listening = "0A";

function listensOn(port: number): boolean {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  return ["tcp", "tcp6"].some((name) =>
    linesOf(`/proc/thread-self/net/${name}`).some((line) => {
      const [, local = "", , state] = line.trim().split(/\s+/);
      return state === listening && local.endsWith(`:${wanted}`);
    }),
  );
}

/** None where the kernel has no such file, as without IPv6. */
function linesOf(path: string): readonly string[] {
  try {
    return readFileSync(path, "utf8").split("\n");
  } catch {
    return [];
  }
}
