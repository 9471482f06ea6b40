import type {
  NodePolicies,
  PodRule,
  PolicyEnforcement,
  RefusedRule,
  RulePeers,
  Verdict,
} from "../../agent/datapath/policies.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Ip, sameIp } from "../../shared/net/ip.ts";
import { type Direction, isInBlock } from "../../shared/policy/mod.ts";

/** What one end of a connection is asked. */
export interface Asked {
  readonly direction: Direction;
  readonly other: Ip;
  readonly protocol: string;
  readonly port: number;
}

const nothing: NodePolicies = { rules: new Map(), isolated: new Map() };

/** The part of a data path that enforces policies, in memory: it judges as rules and isolation say, and by nothing else. */
export class PolicyEnforcementInMemory implements PolicyEnforcement {
  /** What was put in force, in order. */
  readonly enforced: NodePolicies[] = [];
  /** Ids of rules that cannot be put in force. */
  readonly cannot = new Set<string>();
  /** While it is there nothing can be changed. */
  away: string | undefined;
  /** Resolved when it may go on. */
  gate: Promise<void> = Promise.resolve();
  #isBusy = false;

  get inForce(): NodePolicies {
    return this.enforced.at(-1) ?? nothing;
  }

  async enforce(wanted: NodePolicies): Promise<readonly RefusedRule[]> {
    if (this.#isBusy) throw new Error("two changes at a time");
    this.#isBusy = true;
    try {
      await this.gate;
    } finally {
      this.#isBusy = false;
    }
    if (this.away !== undefined) throw new CniError(CniCode.tryAgainLater, this.away);
    this.enforced.push(wanted);
    return [...wanted.rules.keys()].filter((id) => this.cannot.has(id)).map((id) => ({ id, reason: "a test says so" }));
  }

  /** What rules have counted, by their ids. */
  readonly counted = new Map<string, number>();

  counts(): ReturnType<PolicyEnforcement["counts"]> {
    const rules = Array.from(this.counted, ([id, packets]) => ({ id, packets, bytes: 100 * packets, sessions: 1 }));
    return Promise.resolve({ rules, denied: [] });
  }

  /** What is not in force as it is to be. */
  readonly different: string[] = [];

  differences(): Promise<readonly string[]> {
    if (this.away !== undefined) return Promise.reject(new CniError(CniCode.tryAgainLater, this.away));
    return Promise.resolve(this.different);
  }

  /** Says of a packet what policies have decided, once somebody listens. */
  verdict: ((verdict: Verdict) => void) | undefined;
  unreported: string | undefined;

  report(_which: "refused" | "all", told: (verdict: Verdict) => void): void {
    this.verdict = told;
  }

  allows(owner: Owner, asked: Asked): boolean {
    return allows(this.inForce, owner, asked, this.cannot);
  }
}

/** Whether this end lets the first packet through. */
export function allows(
  { rules, isolated }: NodePolicies,
  owner: Owner,
  asked: Asked,
  cannot: ReadonlySet<string> = new Set(),
): boolean {
  const key = ownerKey(owner);
  if (isolated.get(key)?.directions.includes(asked.direction) !== true) return true;
  for (const rule of rules.values())
    if (!cannot.has(rule.id) && rule.targets.some((target) => ownerKey(target) === key) && covers(rule, asked))
      return true;
  return false;
}

const covers = ({ direction, peers, ports }: PodRule, asked: Asked): boolean =>
  direction === asked.direction &&
  (peers === undefined || isPeer(peers, asked.other)) &&
  (ports === undefined ||
    ports.some(
      ({ protocol, first, last = first }) =>
        protocol === asked.protocol && (first === undefined || (asked.port >= first && asked.port <= (last ?? first))),
    ));

const isPeer = ({ sets, blocks }: RulePeers, ip: Ip): boolean =>
  sets.some(({ ips }) => ips.some((each) => sameIp(each, ip))) || blocks.some((block) => isInBlock(block, ip));
