import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { type ApiClient, ApiError } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import type { PodRule, PolicyEnforcement, PolicyName, RuleCount } from "../datapath/policies.ts";

/** How far this node enforces a policy. */
export interface PolicyStatus {
  readonly name: PolicyName;
  readonly generation: number;
  /** Why it does not, if so. */
  readonly failure?: string;
}

export interface ControllerReportsOptions {
  readonly node: string;
  readonly enforcement: Pick<PolicyEnforcement, "counts">;
  /** What there is to report; nothing before policies are in force. */
  statuses(): readonly PolicyStatus[];
  ruleOf(id: string): PodRule | undefined;
  /** The controller that is followed, where one is. */
  client(): ApiClient | undefined;
  /** Whether it wants to know of each policy: Antrea's does for its own kinds only. */
  wantsStatuses(): boolean;
  readonly logger: Logger;
  /** Between two reports of what was counted; as Antrea's agents do it. */
  readonly everyMs?: number;
}

type Counted = Pick<RuleCount, "packets" | "bytes" | "sessions">;

const usualEveryMs = 60_000;
/** Statuses of one turn. The rest has the next, so that a controller that starts is not asked for all at once. */
const maxAtOnce = 100;
const api = "/apis/controlplane.antrea.io/v1beta2";
const zero: Counted = { packets: 0, bytes: 0, sessions: 0 };

/** Tells the controller how far policies are in force here, when that changes, and what their rules let through. */
export class ControllerReports implements AsyncDisposable {
  readonly #options: ControllerReportsOptions;
  readonly #loop: ReconcileLoop;
  readonly #everyMs: number;
  /** What the controller knows, by policies' uids. */
  #told = new Map<string, string>();
  /** What was reported of each rule, by its id. */
  #reported = new Map<string, Counted>();
  #countedAtMs = performance.now();

  constructor(options: ControllerReportsOptions) {
    this.#options = options;
    this.#everyMs = options.everyMs ?? usualEveryMs;
    this.#loop = new ReconcileLoop({
      what: "what the controller knows of this node's policies",
      reconcile: async () => {
        await this.#report();
        return undefined;
      },
      logger: options.logger,
      everyMs: this.#everyMs,
      isDamped: true,
    });
  }

  /** Something else may be in force. */
  changed(): void {
    this.#loop.trigger();
  }

  /** A controller that begins to be followed knows nothing. */
  startOver(): void {
    this.#told = new Map();
    this.#loop.trigger();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }

  async #report(): Promise<void> {
    const { client, wantsStatuses } = this.#options;
    const to = client();
    // It is told when it is followed again.
    if (to === undefined) return;
    if (wantsStatuses() && (await this.#tellStatuses(to))) this.#loop.trigger();
    if (performance.now() - this.#countedAtMs >= this.#everyMs) await this.#tellCounts(to);
  }

  /** Answers whether there is more. @throws {ApiError} */
  async #tellStatuses(client: ApiClient): Promise<boolean> {
    const { node, statuses } = this.#options;
    const told = this.#told;
    const all = statuses();
    const changed = all.filter((status) => told.get(status.name.uid) !== JSON.stringify(status));
    for (const status of changed.slice(0, maxAtOnce)) {
      const { generation, failure } = status;
      const { uid } = status.name;
      const path = `${api}/networkpolicies/${encodeURIComponent(uid)}/status`;
      const realized = {
        nodeName: node,
        generation,
        realizationFailure: failure !== undefined,
        message: failure ?? "",
      };
      await unlessGone(
        client.create(
          { path, action: `report on NetworkPolicy "${uid}"` },
          objectOf("NetworkPolicyStatus", uid, { nodes: [realized] }),
        ),
      );
      told.set(uid, JSON.stringify(status));
    }
    const known = new Set(all.map(({ name }) => name.uid));
    for (const uid of told.keys()) if (!known.has(uid)) told.delete(uid);
    return changed.length > maxAtOnce;
  }

  /** What was counted since the last report that arrived. @throws {CniError} */
  async #tellCounts(client: ApiClient): Promise<void> {
    const { node, enforcement, ruleOf } = this.#options;
    const { rules } = await enforcement.counts();
    const byPolicy = new Map<string, Counted>();
    for (const count of rules) {
      const uid = ruleOf(count.id)?.policy.uid;
      const more = since(this.#reported.get(count.id) ?? zero, count);
      if (uid !== undefined && more.packets > 0) byPolicy.set(uid, sum(byPolicy.get(uid) ?? zero, more));
    }
    const networkPolicies = [...byPolicy].map(([uid, trafficStats]) => ({ networkPolicy: { uid }, trafficStats }));
    if (networkPolicies.length > 0)
      await client.create(
        { path: `${api}/nodestatssummaries`, action: "report what network policies let through" },
        objectOf("NodeStatsSummary", node, { networkPolicies }),
      );
    this.#reported = new Map(rules.map((count) => [count.id, count]));
    this.#countedAtMs = performance.now();
  }
}

const objectOf = (kind: string, name: string, more: object): object => ({
  kind,
  apiVersion: "controlplane.antrea.io/v1beta2",
  metadata: { name },
  ...more,
});

/** A policy may be gone by now, which its watch tells soon. */
async function unlessGone(asked: Promise<unknown>): Promise<void> {
  try {
    await asked;
  } catch (caught) {
    if (!(caught instanceof ApiError && caught.status === 404)) throw caught;
  }
}

/** A rule that went and came again counts from zero. */
const since = (before: Counted, now: Counted): Counted =>
  now.packets < before.packets
    ? now
    : {
        packets: now.packets - before.packets,
        bytes: now.bytes - before.bytes,
        sessions: now.sessions - before.sessions,
      };

const sum = (a: Counted, b: Counted): Counted => ({
  packets: a.packets + b.packets,
  bytes: a.bytes + b.bytes,
  sessions: a.sessions + b.sessions,
});
