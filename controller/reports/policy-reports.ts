import type { Changes, PolicyChange } from "../policy/mod.ts";

/** How far one node enforces a policy. */
export interface NodeReport {
  readonly nodeName: string;
  readonly generation: number;
  readonly realizationFailure: boolean;
  readonly message: string;
}

/** As a controller has it. */
export interface TimedReport extends NodeReport {
  /** By the clock of the controller that the node told it. Of two the newer one holds, wherever it came from. */
  readonly reportedAtMs: number;
}

/** What was let through by a policy's rules. */
export interface Traffic {
  readonly packets: number;
  readonly bytes: number;
  readonly sessions: number;
}

/** Of a node's message: a sentence. */
const maxMessageChars = 512;
/** Nodes of one policy that have reported; more than any cluster has. */
const maxNodes = 10_000;

export const noTraffic: Traffic = { packets: 0, bytes: 0, sessions: 0 };

interface Reported {
  readonly nodes: Map<string, TimedReport>;
  traffic: Traffic;
  /** Where the policy is to be enforced now. */
  span: PolicyChange["span"];
}

/** What nodes have told of the policies that there are. It begins anew with the process. */
export class PolicyReports {
  readonly #byUid = new Map<string, Reported>();

  /** Policies come and go. */
  follow({ policies }: Pick<Changes, "policies">): void {
    for (const { t, policy, nodes, span } of policies) {
      const there = this.#byUid.get(policy.uid);
      if (t === "deleted") this.#byUid.delete(policy.uid);
      else if (there !== undefined) there.span = span;
      else this.#byUid.set(policy.uid, { nodes: new Map(), traffic: noTraffic, span });
      for (const node of nodes.left) there?.nodes.delete(node);
    }
  }

  has(uid: string): boolean {
    return this.#byUid.has(uid);
  }

  /** Answers whether the policy is that node's to enforce; of others nothing is kept. */
  enforced(uid: string, report: TimedReport): boolean {
    const { nodes, span } = this.#byUid.get(uid) ?? {};
    if (nodes === undefined || span?.has(report.nodeName) !== true) return false;
    const before = nodes.get(report.nodeName);
    const isNews = before === undefined ? nodes.size < maxNodes : before.reportedAtMs <= report.reportedAtMs;
    if (isNews) nodes.set(report.nodeName, { ...report, message: report.message.slice(0, maxMessageChars) });
    return true;
  }

  nodesOf(uid: string): readonly TimedReport[] {
    return [...(this.#byUid.get(uid)?.nodes.values() ?? [])];
  }

  reportOf(uid: string, node: string): TimedReport | undefined {
    return this.#byUid.get(uid)?.nodes.get(node);
  }

  uids(): Iterable<string> {
    return this.#byUid.keys();
  }

  /** Adds to what was let through before. */
  count(uid: string, traffic: Traffic): void {
    const reported = this.#byUid.get(uid);
    if (reported !== undefined) reported.traffic = sumOf(reported.traffic, traffic);
  }

  trafficOf(uid: string): Traffic | undefined {
    return this.#byUid.get(uid)?.traffic;
  }
}

/** What a node tells is only ever added to: it can falsify its own figures, and takes away nobody else's. */
export const sumOf = (before: Traffic, { packets, bytes, sessions }: Traffic): Traffic => ({
  packets: before.packets + Math.max(0, packets),
  bytes: before.bytes + Math.max(0, bytes),
  sessions: before.sessions + Math.max(0, sessions),
});
