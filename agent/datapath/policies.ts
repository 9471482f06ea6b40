import type { Owner } from "../../shared/cni/types.ts";
import type { Ip } from "../../shared/net/ip.ts";
import type { BlockPeer, Direction } from "../../shared/policy/mod.ts";
import type { LoggedVerdicts } from "../config/policies-config.ts";

export type { LoggedVerdicts } from "../config/policies-config.ts";

/** The NetworkPolicy that a rule comes from. */
export interface PolicyName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Addresses of pods that selectors chose. Never changed: other members are another object of the same name. */
export interface AddressSet {
  /** Of an address group, or of a part of one. Rules share sets. */
  readonly name: string;
  readonly ips: readonly Ip[];
}

/** Whom a rule lets talk: members of any of the sets, and addresses of any of the blocks. Neither: nobody. */
export interface RulePeers {
  readonly sets: readonly AddressSet[];
  readonly blocks: readonly BlockPeer[];
}

/** Ports of one protocol, both ends included; names are resolved by then. */
export interface RulePorts {
  readonly protocol: "TCP" | "UDP" | "SCTP";
  /** Absent: all ports of the protocol. */
  readonly first?: number;
  /** Absent: `first` alone. */
  readonly last?: number;
}

/**
 * What one rule of a policy allows pods of this node. Never changed: a rule that says something else is another object,
 * so that whoever enforces rules sees by identity which are as before.
 */
export interface PodRule {
  /** The same while the rule's text is, whatever happens to the members of its groups. */
  readonly id: string;
  readonly policy: PolicyName;
  readonly direction: Direction;
  /** Attachments of this node. Their isolation is told apart from what is allowed: see `NodePolicies.isolated`. */
  readonly targets: readonly Owner[];
  /** Absent: anybody, also outside of the cluster. */
  readonly peers?: RulePeers;
  /** Absent: every port of every protocol. None: no port that anybody has. */
  readonly ports?: readonly RulePorts[];
}

/** A pod of this node of which a direction is closed but for what rules allow. */
export interface Isolation {
  readonly owner: Owner;
  readonly directions: readonly Direction[];
  /** The policies that isolate; none where the pod's policies are not known yet. */
  readonly by: readonly PolicyName[];
}

/** All that this node is to enforce. */
export interface NodePolicies {
  /** By id. */
  readonly rules: ReadonlyMap<string, PodRule>;
  /** By owner's key. Pods that are not named here are open in both directions. */
  readonly isolated: ReadonlyMap<string, Isolation>;
}

/** A rule that could not be put in force. What it would have allowed stays closed; other rules are not concerned. */
export interface RefusedRule {
  readonly id: string;
  readonly reason: string;
}

/** How often a rule let something in or out, since the rule is in force. */
export interface RuleCount {
  readonly id: string;
  readonly packets: number;
  readonly bytes: number;
  /** Connections. */
  readonly sessions: number;
}

/** How often a pod's isolation refused something, in one direction. */
export interface DeniedCount {
  readonly owner: Owner;
  readonly direction: Direction;
  readonly packets: number;
  readonly bytes: number;
}

/** What policies have decided about a packet. */
export interface Verdict {
  readonly direction: Direction;
  /** The pod whose policies have decided; absent where its interface is gone by now. */
  readonly owner?: Owner;
  /** The rule that let a connection's first packet pass; absent: none did, and the packet is refused. */
  readonly rule?: PodRule;
  /** From its IP header on, cut after that of the transport; only valid during the call that gives it. */
  readonly packet: Uint8Array;
}

/**
 * The part of a data path that enforces policies. Node to its own pods (probes of kubelet), a pod to itself, replies,
 * ARP and neighbour discovery are never refused.
 */
export interface PolicyEnforcement {
  /**
   * Puts exactly this in force, whatever was before, and answers when it is. Between old and new the node is never more
   * open than both together, nor more closed than what both allow. An open connection that no rule of the new state
   * allows is cut within a second; others lose no packet. Owners without an interface (yet) are remembered: their first
   * packet already meets the rules. It is also called before the data path has started, which then opens no pod before
   * this is in force.
   * @returns the rules that could not be put in force
   * @throws {CniError} where nothing can be changed now (switch or kernel away); what is wanted is applied once it can
   */
  enforce(wanted: NodePolicies): Promise<readonly RefusedRule[]>;
  /** @throws {CniError} 11 where the switch or kernel cannot be asked */
  counts(): Promise<{ readonly rules: readonly RuleCount[]; readonly denied: readonly DeniedCount[] }>;
  /** Differences between what is wanted and what is in force, in sentences; none where all is as wanted. */
  differences(): Promise<readonly string[]>;
  /** The rule that has this number in the flows of a switch, for people who look at these. */
  ruleOf?(number: number): PodRule | undefined;
  /**
   * Tells of verdicts from the data path's start on: of so many as switch or kernel are allowed to report, and of none
   * twice. To be called before `enforce`. Absent: this data path cannot.
   */
  report?(which: Exclude<LoggedVerdicts, "off">, told: (verdict: Verdict) => void): void;
  /** Why verdicts are not reported, if so. */
  readonly unreported?: string | undefined;
}
