import { type Cidr, formatCidr } from "../../../../../shared/net/ip.ts";
import { commandMs, runProgram } from "../../../../platform/run-program.ts";
import {
  askForChain,
  listCounters,
  type NetlinkSocket,
  readCounter,
  readRuleCount,
  type Table,
} from "../../../../protocols/netlink/mod.ts";
import { minimal, type TunnelPackets, tunnelMatch } from "../../../linux/packet-chains.ts";
import { requireScript } from "../../../linux/packet-rule-script.ts";
import { rulesProblem, stillMissing } from "../../../linux/rule-keeper.ts";
import { unlessMissing } from "../../../linux/set-elements.ts";

export interface GuardedWays {
  /** Interface that leads to the node's own pods; it names the table. */
  readonly gateway: string;
  /** Devices that encrypt, or by which this node's own switch is reached. */
  readonly devices: readonly string[];
  /** Where the kernel itself encrypts (XFRM): a tunnel's packet passes that it encrypts, or that was encrypted. */
  readonly byKernel: boolean;
  /** The networks of all pods of the cluster. */
  readonly networks: readonly Cidr[];
  /** That of nodes that do not encrypt. */
  readonly tunnel: TunnelPackets;
}

const words = { 4: "ip", 6: "ip6" } as const;
const counters = { sent: "sent-in-clear", received: "received-in-clear" } as const;

const prefix = "pipette-clear-";

/** Its own table: it stays when the packet rules are replaced, and when the agent ends. */
export const guardTable = (gateway: string): Table => ({ family: "inet", name: `${prefix}${gateway}` });

interface Chain {
  readonly name: string;
  readonly hook: string;
  readonly rules: readonly string[];
}

function chainsOf({ gateway, devices, byKernel, networks, tunnel }: GuardedWays): readonly Chain[] {
  const safe = `{ ${["lo", gateway, ...devices].map((name) => `"${name}"`).join(", ")} }`;
  const unless = (state: string): string => (byKernel ? `${state} missing ` : "");
  const sent = `counter name "${counters.sent}" drop`;
  const received = `counter name "${counters.received}" drop`;
  const families = ([4, 6] as const).filter((family) => networks.some(({ ip }) => ip.family === family));
  const each = (rule: (ip: string, blocks: string) => string): readonly string[] =>
    families.map((family) => {
      const own = minimal(networks.filter(({ ip }) => ip.family === family)).map(formatCidr);
      return rule(words[family], `{ ${own.join(", ")} }`);
    });
  return [
    {
      // After every translation of addresses.
      name: "leaving",
      hook: "type filter hook postrouting priority srcnat + 20",
      rules: [
        ...each((ip, all) => `oifname != ${safe} ${ip} daddr ${all} ${sent}`),
        // What the flows of an agent without encryption still send, until the port of the tunnel goes.
        `oifname != ${safe} ${tunnelMatch(tunnel)} ${unless("rt ipsec")}${sent}`,
      ],
    },
    {
      name: "arriving",
      hook: "type filter hook prerouting priority raw + 10",
      rules: [
        ...each((ip, all) => `iifname != ${safe} ${ip} saddr ${all} ${ip} daddr ${all} ${received}`),
        // Nobody listens, and the refusal would say once more in clear what came.
        `iifname != ${safe} ${tunnelMatch(tunnel)} ${unless("meta secpath")}${received}`,
      ],
    },
  ];
}

/**
 * The rules by which packets for pods leave the node's kernel encrypted or not at all. They know neither pods nor other
 * nodes, only the networks of all pods, so there is no moment in which they would have to be changed. They come before
 * anything else and go after everything else.
 */
export class ClearGuard {
  readonly #filters: NetlinkSocket;
  #ways: GuardedWays;

  /** @param filters socket for packet filters, which lives as long */
  constructor(filters: NetlinkSocket, ways: GuardedWays) {
    this.#filters = filters;
    this.#ways = ways;
  }

  /** In one transaction: there is no moment without rules where there were some. @throws {CniError} 102 */
  async install(): Promise<void> {
    const table = nameOf(this.#ways.gateway);
    const chains = chainsOf(this.#ways);
    const lines = [
      `table ${table}`,
      ...Object.values(counters).map((name) => `add counter ${table} ${name}`),
      ...chains.flatMap(({ name, hook, rules }) => [
        `add chain ${table} ${name} { ${hook}; policy accept; }`,
        `flush chain ${table} ${name}`,
        ...rules.map((rule) => `add rule ${table} ${name} ${rule}`),
      ]),
    ];
    await requireScript("keep packets from leaving in clear", lines);
  }

  /** With other devices from now on. @throws {CniError} 102 */
  async useDevices(devices: readonly string[]): Promise<void> {
    if (devices.join() === this.#ways.devices.join()) return;
    this.#ways = { ...this.#ways, devices };
    await this.install();
  }

  /** Which rules somebody has deleted, in a sentence; `install` restores them. */
  missing(): Promise<readonly string[]> {
    return stillMissing(() => this.#lackingRules());
  }

  #lackingRules(): readonly string[] {
    const chains = chainsOf(this.#ways);
    const { name, family } = guardTable(this.#ways.gateway);
    const wanted = chains.reduce((sum, { rules }) => sum + rules.length, 0);
    const found = chains.reduce(
      (sum, chain) =>
        sum + unlessMissing(0, () => this.#filters.get(askForChain(name, chain.name, family), readRuleCount)),
      0,
    );
    return found === wanted ? [] : [rulesProblem(found, wanted, name)];
  }

  /** How many packets would have left, or have come, in clear. */
  dropped(): { readonly sent: number; readonly received: number } {
    const all = unlessMissing([], () => this.#filters.dump(listCounters(guardTable(this.#ways.gateway)), readCounter));
    const of = (name: string): number => all.find((counter) => counter.name === name)?.packets ?? 0;
    return { sent: of(counters.sent), received: of(counters.received) };
  }
}

/**
 * Takes away the rules of agents, also of such whose gateway had another name.
 * @param kept gateway whose rules stay
 * @returns whether there was any
 * @throws {CniError} 102
 */
export async function removeClearGuards(kept?: string): Promise<boolean> {
  const action = "let packets leave in clear";
  const { stdout, failure } = await runProgram("nft", ["list", "tables", "inet"], { deadlineMs: commandMs });
  // A node without nftables has no rules.
  if (failure !== "") return false;
  const names = [...stdout.matchAll(/^table inet (\S+)$/gm)].map(([, name = ""]) => name);
  const own = kept === undefined ? undefined : guardTable(kept).name;
  const gone = names.filter((name) => name.startsWith(prefix) && name !== own);
  if (gone.length > 0)
    await requireScript(
      action,
      gone.map((name) => `delete table inet ${name}`),
    );
  return gone.length > 0;
}

const nameOf = (gateway: string): string => `inet ${guardTable(gateway).name}`;
