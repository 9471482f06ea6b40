import { Refusal } from "../../shared/access/mod.ts";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { type ApiClient, ApiError, type ApiObject, listIn, mapsIn, textIn } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import type { Changes } from "../policy/mod.ts";
import { type NodeReport, noTraffic, PolicyReports, sumOf, type TimedReport, type Traffic } from "./policy-reports.ts";
import type { Holder } from "./status-lease.ts";

/** The controllers that share what nodes report. */
export interface Replicas {
  readonly holder: Holder;
  /** For requests to the holder; whoever asks closes it. */
  connect(address: string): ApiClient;
  readonly logger: Logger;
}

/** Of one policy, from a controller that does not hold the Lease. */
export interface HandedReports {
  readonly uid: string;
  readonly nodes: readonly TimedReport[];
  /** Since it was handed on last. */
  readonly traffic: Traffic;
}

export const reportsPath = "/apis/controlplane.pipette.io/v1/policyreports";
/** Reports of nodes in one request: with the longest messages 1.5 MiB, of the 2 MiB that are taken. */
const maxHanded = 500;
/** What the holder did not know yet is handed on again. */
const everyMs = 5_000;
const retryAfterS = 5;

/**
 * What nodes report to all controllers. Each keeps what its own clients told; the one that holds the Lease has everything,
 * and answers: the others hand theirs on to it, and ask it. A new holder is told all that each of them knows.
 */
export class ClusterReports implements AsyncDisposable {
  readonly #known = new PolicyReports();
  readonly #replicas: Replicas | undefined;
  readonly #loop: ReconcileLoop | undefined;
  /** What the holder has not been told, by policy: nodes, and what was counted. */
  readonly #unsent = new Map<string, Set<string>>();
  readonly #uncounted = new Map<string, Traffic>();
  /** The holder that was told of all the rest. */
  #told: string | undefined;

  /** @param replicas absent: there is this one alone */
  constructor(replicas?: Replicas) {
    this.#replicas = replicas;
    if (replicas === undefined) return;
    this.#loop = new ReconcileLoop({
      what: "what the controller with the Lease knows of the nodes' reports",
      logger: replicas.logger,
      everyMs,
      reconcile: async () => {
        await this.#handOn(replicas);
        return undefined;
      },
    });
  }

  /** Another controller may hold the Lease. */
  holderChanged(): void {
    this.#loop?.trigger();
  }

  /** Policies come and go, and the nodes that they concern. */
  follow(changes: Pick<Changes, "policies">): void {
    this.#known.follow(changes);
  }

  has(uid: string): boolean {
    return this.#known.has(uid);
  }

  /** A node tells how far it enforces a policy. */
  enforced(uid: string, report: NodeReport): void {
    if (!this.#known.enforced(uid, { ...report, reportedAtMs: Date.now() }) || this.#isHere) return;
    this.#mark(uid, report.nodeName);
    this.#loop?.trigger();
  }

  /** A node tells what a policy let through since it told that last. */
  count(uid: string, traffic: Traffic): void {
    if (this.#isHere) this.#known.count(uid, traffic);
    else if (this.has(uid)) this.#uncounted.set(uid, sumOf(this.#uncounted.get(uid) ?? noTraffic, traffic));
    this.#loop?.trigger();
  }

  /**
   * Takes what another controller was told. Answers the policies of which it was not all taken, because they, or their
   * pods on these nodes, are not known here yet, or no more.
   * @throws {Refusal} 409 where this one does not hold the Lease
   */
  take(handed: readonly HandedReports[]): readonly string[] {
    this.#holdHere();
    const untaken: string[] = [];
    for (const { uid, nodes, traffic } of handed) {
      this.#known.count(uid, traffic);
      // A clock that is ahead must not outlast what comes later.
      const reportedAtMs = (report: TimedReport): number => Math.min(report.reportedAtMs, Date.now());
      const taken = nodes.filter((each) => this.#known.enforced(uid, { ...each, reportedAtMs: reportedAtMs(each) }));
      if (taken.length < nodes.length) untaken.push(uid);
    }
    return untaken;
  }

  /** What all nodes have told of a policy. @throws {Refusal} 503 where the holder cannot be asked */
  async nodesOf(uid: string): Promise<readonly NodeReport[]> {
    if (this.#isHere) return this.nodesHere(uid);
    const answer = await this.#ask(`${reportsPath}/${encodeURIComponent(uid)}`);
    return mapsIn(answer, "nodes").map(readReport);
  }

  /** What all nodes have counted, by policy. @throws {Refusal} 503 where the holder cannot be asked */
  async traffic(): Promise<ReadonlyMap<string, Traffic>> {
    if (this.#isHere) return this.trafficHere();
    const answer = await this.#ask(reportsPath);
    return new Map(mapsIn(answer, "items").map((item) => [textIn(item, "uid") ?? "", readTraffic(item)]));
  }

  /** @throws {Refusal} 409 where this one does not hold the Lease */
  nodesHere(uid: string): readonly NodeReport[] {
    this.#holdHere();
    return this.#known.nodesOf(uid).map(({ reportedAtMs: _, ...report }) => report);
  }

  /** @throws {Refusal} 409 where this one does not hold the Lease */
  trafficHere(): ReadonlyMap<string, Traffic> {
    this.#holdHere();
    return new Map([...this.#known.uids()].map((uid) => [uid, this.#known.trafficOf(uid) ?? noTraffic]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop?.[Symbol.asyncDispose]();
  }

  get #isHere(): boolean {
    return this.#replicas === undefined || this.#replicas.holder.t === "this one";
  }

  #holdHere(): void {
    if (!this.#isHere) throw new Refusal(409, "another controller holds the Lease");
  }

  #mark(uid: string, node: string): void {
    const there = this.#unsent.get(uid);
    if (there === undefined) this.#unsent.set(uid, new Set([node]));
    else there.add(node);
  }

  async #ask(path: string): Promise<ApiObject> {
    const { holder } = this.#replicas ?? {};
    if (holder?.t !== "another")
      throw new Refusal(503, "no controller holds the Lease, so nobody knows what all nodes report", retryAfterS);
    try {
      await using client = this.#replicas?.connect(holder.address);
      return (await client?.get({ path, action: "ask the controller that holds the Lease" })) ?? {};
    } catch (caught) {
      throw new Refusal(503, ApiError.from(caught).message, retryAfterS);
    }
  }

  /** @throws {ApiError} */
  async #handOn({ holder, connect }: Replicas): Promise<void> {
    if (holder.t === "nobody known") return;
    if (holder.t === "this one") return this.#keepAll();
    if (holder.identity !== this.#told) {
      this.#told = holder.identity;
      for (const uid of this.#known.uids())
        for (const { nodeName } of this.#known.nodesOf(uid)) this.#mark(uid, nodeName);
    }
    if (this.#unsent.size + this.#uncounted.size === 0) return;
    await using client = connect(holder.address);
    const untaken: (readonly [uid: string, node: string])[] = [];
    for (let batch = this.#batch(); batch.length > 0; batch = this.#batch()) {
      const named = new Set(listIn(await this.#hand(client, batch), "untaken"));
      for (const { uid, nodes } of batch)
        if (named.has(uid)) for (const { nodeName } of nodes) untaken.push([uid, nodeName]);
    }
    // With the next run: the holder may hear of a policy, or of a pod, a moment later.
    for (const [uid, node] of untaken) this.#mark(uid, node);
  }

  async #hand(client: ApiClient, policies: readonly HandedReports[]): Promise<ApiObject> {
    try {
      const body = { kind: "PolicyReports", apiVersion: "controlplane.pipette.io/v1", policies };
      return await client.create({ path: reportsPath, action: "hand on what nodes report" }, body);
    } catch (caught) {
      // What was counted may have come without an answer: then it is left out rather than counted twice.
      const isRefused = caught instanceof ApiError && caught.status !== undefined;
      for (const { uid, nodes, traffic } of policies) {
        for (const { nodeName } of nodes) this.#mark(uid, nodeName);
        if (isRefused) this.#uncounted.set(uid, sumOf(this.#uncounted.get(uid) ?? noTraffic, traffic));
      }
      throw caught;
    }
  }

  /** Of what is to be handed on, as much as one request takes. */
  #batch(): HandedReports[] {
    const batch: HandedReports[] = [];
    let size = 0;
    for (const uid of this.#pending()) {
      if (size >= maxHanded) break;
      const marked = this.#unsent.get(uid) ?? new Set<string>();
      const names = [...marked].slice(0, maxHanded - size);
      for (const node of names) marked.delete(node);
      if (marked.size === 0) this.#unsent.delete(uid);
      const traffic = this.#uncounted.get(uid) ?? noTraffic;
      this.#uncounted.delete(uid);
      const nodes = names.flatMap((node) => this.#known.reportOf(uid, node) ?? []);
      size += Math.max(1, nodes.length);
      batch.push({ uid, nodes, traffic });
    }
    return batch;
  }

  *#pending(): Generator<string> {
    yield* this.#unsent.keys();
    yield* this.#uncounted.keys();
  }

  #keepAll(): void {
    this.#told = undefined;
    this.#unsent.clear();
    for (const [uid, traffic] of this.#uncounted) this.#known.count(uid, traffic);
    this.#uncounted.clear();
  }
}

const countIn = (object: ApiObject, key: string): number => {
  const value = object[key];
  return typeof value === "number" && Number.isSafeInteger(value) ? value : 0;
};

const readTraffic = (object: ApiObject): Traffic => ({
  packets: countIn(object, "packets"),
  bytes: countIn(object, "bytes"),
  sessions: countIn(object, "sessions"),
});

const readReport = (object: ApiObject): NodeReport => ({
  nodeName: textIn(object, "nodeName") ?? "",
  generation: countIn(object, "generation"),
  realizationFailure: object["realizationFailure"] === true,
  message: textIn(object, "message") ?? "",
});

/** What another controller hands on, as it comes. */
export const readHanded = (object: ApiObject): HandedReports[] =>
  mapsIn(object, "policies").map((policy) => ({
    uid: textIn(policy, "uid") ?? "",
    nodes: mapsIn(policy, "nodes").map((node) => ({
      ...readReport(node),
      reportedAtMs: countIn(node, "reportedAtMs"),
    })),
    traffic: readTraffic({ ...(policy["traffic"] as ApiObject) }),
  }));
