import type { Changes } from "../policy/mod.ts";

/** How far one node enforces a policy. */
export interface NodeReport {
  readonly nodeName: string;
  readonly generation: number;
  readonly realizationFailure: boolean;
  readonly message: string;
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

interface Reported {
  readonly nodes: Map<string, NodeReport>;
  traffic: Traffic;
}

/** What nodes have told of the policies that there are; of others nothing is kept. It begins anew with the process. */
export class PolicyReports {
  readonly #byUid = new Map<string, Reported>();

  /** Policies come and go. */
  follow({ policies }: Pick<Changes, "policies">): void {
    for (const { t, policy, nodes } of policies) {
      if (t === "deleted") this.#byUid.delete(policy.uid);
      else if (!this.#byUid.has(policy.uid))
        this.#byUid.set(policy.uid, { nodes: new Map(), traffic: { packets: 0, bytes: 0, sessions: 0 } });
      for (const node of nodes.left) this.#byUid.get(policy.uid)?.nodes.delete(node);
    }
  }

  has(uid: string): boolean {
    return this.#byUid.has(uid);
  }

  enforced(uid: string, report: NodeReport): void {
    const nodes = this.#byUid.get(uid)?.nodes;
    if (nodes === undefined || (nodes.size >= maxNodes && !nodes.has(report.nodeName))) return;
    nodes.set(report.nodeName, { ...report, message: report.message.slice(0, maxMessageChars) });
  }

  nodesOf(uid: string): readonly NodeReport[] {
    return [...(this.#byUid.get(uid)?.nodes.values() ?? [])];
  }

  /** Adds to what was let through before. */
  count(uid: string, { packets, bytes, sessions }: Traffic): void {
    const reported = this.#byUid.get(uid);
    if (reported === undefined) return;
    const { traffic } = reported;
    reported.traffic = {
      packets: traffic.packets + packets,
      bytes: traffic.bytes + bytes,
      sessions: traffic.sessions + sessions,
    };
  }

  trafficOf(uid: string): Traffic | undefined {
    return this.#byUid.get(uid)?.traffic;
  }
}
