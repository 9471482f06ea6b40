import { pause } from "../../shared/async/abortable.ts";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { withTimeout } from "../../shared/async/with-timeout.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { ApiClient, KubernetesEvents } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { Problem } from "../datapath/datapath.ts";
import type { Isolation, LoggedVerdicts, PodRule, PolicyEnforcement, RefusedRule } from "../datapath/policies.ts";
import type { AgentMeter, AgentSamples } from "../metrics/meter.ts";
import { ControllerReports, type PolicyStatus } from "./controller-reports.ts";
import { ControllerWatch, type WatchTimes } from "./controller-watch.ts";
import type { KnownPolicy } from "./known-policy.ts";
import { podKey } from "./members.ts";
import { PolicyMeasures } from "./policy-measures.ts";
import { type PodOf, RuleStore } from "./rule-store.ts";
import { StateFile } from "./state-file.ts";
import { VerdictLog } from "./verdict-log.ts";

export interface NodePoliciesOptions {
  /** As the controller knows it. */
  readonly node: string;
  readonly dataDir: string;
  /** How long an ADD waits for the pod's policies. */
  readonly waitMs: number;
  readonly enforcement: PolicyEnforcement;
  /** Absent: nothing is told. */
  readonly events?: Pick<KubernetesEvents, "tell">;
  /** Which verdicts are logged; absent: none. */
  readonly log?: LoggedVerdicts;
  /** Where the controller is now. */
  connect(): Promise<ApiClient>;
  readonly logger: Logger;
  readonly times?: WatchTimes;
  /** Between two reports of what was counted. */
  readonly reportMs?: number;
  readonly meter?: AgentMeter | undefined;
}

/** An attachment, and whose it is as far as its lease says. */
export interface Leased {
  readonly owner: Owner;
  readonly pod: PodOf;
}

/**
 * Antrea's controllers do not say when a pod is computed. Then it counts as such so long after its interface is there:
 * several times what a controller takes that has nothing else to do.
 */
const assumedAfterMs = 1000;
/** An ADD waits for it. What comes during a change is one change, however long that takes. */
const enforceAfterMs = 1;
/** Sentences of one kind that people are told. */
const maxSentences = 20;

/**
 * Network policies on this node: follows the controller, has the data path enforce what follows for the node's pods, and
 * keeps pods closed of which not all is known.
 */
export class NodePolicies implements AsyncDisposable {
  readonly #options: NodePoliciesOptions;
  readonly #store = new RuleStore();
  readonly #file: StateFile;
  readonly #ended = new AbortController();
  #loop: ReconcileLoop | undefined;
  #watch: ControllerWatch | undefined;
  /** Attachments of which all is known and in force. By owner's key, as those below. */
  #settled = new Set<string>();
  /** ADDs that wait for that. */
  readonly #waiting = new Map<string, () => void>();
  /** Pods that started before it. */
  readonly #late = new Map<string, Owner>();
  #reports: ControllerReports | undefined;
  /** What is in force, and by rules' ids what could not be put in force. */
  #inForce: { readonly rules: ReadonlyMap<string, PodRule>; readonly statuses: readonly PolicyStatus[] } = {
    rules: new Map(),
    statuses: [],
  };
  #isolated: ReadonlyMap<string, Isolation> = new Map();
  #refused: readonly RefusedRule[] = [];
  #heardAtMs: number | undefined;
  readonly #measures: PolicyMeasures;
  readonly #log: VerdictLog | undefined;

  constructor(options: NodePoliciesOptions) {
    this.#options = options;
    this.#file = new StateFile(options.dataDir, this.#store, options.logger);
    this.#log = this.#logged();
    this.#measures = new PolicyMeasures(options.meter);
  }

  /**
   * Before the data path starts: tells it what was last known, for all attachments that are known by then.
   * @param leased attachments with leases of ours
   */
  async prepare(leased: readonly Leased[]): Promise<void> {
    const { logger } = this.#options;
    const read = this.#file.read();
    if (read.t === "damaged")
      logger.error(
        "what was known of network policies is of no use: every pod is isolated until the controller is heard",
        { path: this.#file.path, error: read.is },
      );
    for (const { owner, pod } of leased) this.#store.attach(owner, pod);
    if (read.t === "ok") {
      const leases = new Map(leased.map(({ owner, pod }) => [ownerKey(owner), pod]));
      // A lease that was lost and made anew does not tell whose it is.
      for (const { owner, pod } of read.state.attachments)
        if (typeof (leases.get(ownerKey(owner)) ?? "none") === "string") this.#store.attach(owner, pod);
      const { policies } = read.state;
      if (policies !== undefined) this.#store.replace(policies.set, policies.tellsPods);
    }
    try {
      await this.#enforce();
    } catch (caught) {
      logger.info("network policies are put in force with the data path's start", { error: reasonOf(caught) });
    }
  }

  /**
   * Once the data path has started, and before anything is served: what is to be in force is, for every interface that
   * stands. From then on the controller is followed.
   * @param attached owners of interfaces and of leases
   * @throws {CniError} where it cannot be put in force
   */
  async begin(attached: readonly Owner[]): Promise<void> {
    const there = new Map(attached.map((owner) => [ownerKey(owner), owner]));
    for (const { owner } of [...this.#store.attachments]) if (!there.delete(ownerKey(owner))) this.#store.detach(owner);
    for (const owner of there.values()) this.#store.attach(owner, "unknown");
    const { logger, node, connect, times, enforcement, reportMs } = this.#options;
    this.#loop = new ReconcileLoop({
      ...{ what: "network policies", reconcile: () => this.#measures.realize(() => this.#enforce()), logger },
      gatherMs: enforceAfterMs,
    });
    await this.#loop.run();
    this.#reports = new ControllerReports({
      ...{ node, enforcement, logger },
      statuses: () => this.#inForce.statuses,
      ruleOf: (id) => this.#inForce.rules.get(id),
      client: () => this.#watch?.client,
      wantsStatuses: () => this.#store.tellsPods === true,
      ...(reportMs === undefined ? {} : { everyMs: reportMs }),
    });
    this.#watch = new ControllerWatch({
      node,
      connect,
      logger,
      follower: {
        complete: (set, { tellsPods, isStale }) => {
          // What an earlier process of the controller knew is better than nothing, and nothing else.
          if (isStale && this.#store.tellsPods !== undefined) return false;
          this.#measures.changed();
          this.#store.replace(set, tellsPods);
          this.#loop?.trigger();
          this.#reports?.startOver();
          logger.info("the controller has told all network policies", { policies: set.policies.size, isStale });
          return true;
        },
        changed: (event) => {
          this.#measures.changed();
          this.#store.apply(event);
          this.#loop?.trigger();
        },
        heard: () => {
          this.#heardAtMs = performance.now();
        },
      },
      ...(times === undefined ? {} : { times }),
    });
  }

  /**
   * Before an interface is made: its pod's policies are in force, or it is closed.
   * @throws {CniError} where neither can be
   */
  async admit(owner: Owner, pod: PodOf): Promise<void> {
    const key = ownerKey(owner);
    const known = this.#store.podOf(owner);
    if (known !== undefined && isSamePod(known, pod) && this.#settled.has(key)) return;
    this.#settled.delete(key);
    this.#store.attach(owner, pod);
    await this.#loop?.run();
  }

  /** Once the interface is there: waits, within the bound, until its pod's policies are known and in force. */
  async settle(owner: Owner): Promise<void> {
    const key = ownerKey(owner);
    if (this.#settled.has(key)) return;
    const { waitMs, logger } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(key, resolve);
    if (this.#store.tellsPods === false) void this.#assumeLater(owner);
    const isLate = await withTimeout(
      promise.then(() => false),
      waitMs,
      () => true,
    );
    this.#waiting.delete(key);
    if (!isLate) return;
    this.#late.set(key, owner);
    const error = this.#watch?.problem ?? "the controller has not computed it";
    logger.warn("a pod starts isolated: its network policies are not known yet", {
      ...{ ...ownerFields(owner), waitedMs: waitMs, error },
    });
    const of = this.#store.podOf(owner);
    const message = `It starts isolated: its network policies were not known after ${waitMs} ms (${error})`;
    if (typeof of === "object") this.#options.events?.tell({ kind: "Pod", of, reason: "StartedIsolated", message });
  }

  /** The interface is gone. */
  forget(owner: Owner): void {
    this.#store.detach(owner);
    this.#settled.delete(ownerKey(owner));
    this.#late.delete(ownerKey(owner));
    this.#loop?.trigger();
  }

  /** One sentence for people. */
  get summary(): string {
    const { rules, statuses } = this.#inForce;
    const failing = statuses.filter(({ failure }) => failure !== undefined).length;
    const refused = failing === 0 ? "" : `, ${failing} of them refused in part or as a whole`;
    return `network policies: ${statuses.length} with ${rules.size} rules${refused}; controller ${this.#lastHeard()}`;
  }

  /** Tells a scrape what is in force. */
  measure(samples: AgentSamples): Promise<void> {
    return this.#measures.tell(samples, this.#inForce.rules, this.#options.enforcement);
  }

  /** What is to be in force, as it was told to the data path last. */
  get isolated(): Iterable<Isolation> {
    return this.#isolated.values();
  }

  /** What is not in force as it is to be, in sentences. */
  async differences(): Promise<readonly string[]> {
    try {
      return some(await this.#options.enforcement.differences(), (difference) => difference);
    } catch (caught) {
      return [reasonOf(caught)];
    }
  }

  /** The rule that has this number in the flows of a switch. */
  ruleOf(number: number): PodRule | undefined {
    return this.#options.enforcement.ruleOf?.(number);
  }

  problems(): readonly Problem[] {
    if (this.#store.tellsPods !== undefined) return [];
    const is = this.#watch?.problem ?? "the controller has not told them yet";
    return [{ code: 50, message: `Cannot let pods communicate: no network policies are known: ${is}` }];
  }

  /** @param standing owners of interfaces */
  degraded(standing: readonly Owner[]): readonly string[] {
    const policies = [...this.#store.set.policies.values()];
    const there = new Set(standing.map(ownerKey));
    const closed = [...this.#store.attachments].filter(
      ({ owner }) => there.has(ownerKey(owner)) && !this.#store.isKnown(owner),
    );
    const named = (pod: PodOf): string => (typeof pod === "string" ? "of an unknown pod" : `of "${podKey(pod)}"`);
    const watching = this.#watch?.problem;
    return [
      ...(watching === undefined
        ? []
        : [`The controller of network policies is not followed, ${this.#lastHeard()}: ${watching}`]),
      ...some(
        closed,
        ({ owner, pod }) =>
          `Sandbox "${owner.sandboxId}" ${named(pod)} is isolated: its network policies are not known`,
      ),
      ...some(
        policies.filter(({ refused }) => refused !== undefined),
        ({ name, refused }) =>
          `NetworkPolicy "${name.namespace}/${name.name}" is not enforced, and its pods are isolated: ${refused}`,
      ),
      ...some(this.#refused, ({ id, reason }) => {
        const { namespace = "", name = id } = this.#inForce.rules.get(id)?.policy ?? {};
        return `A rule of NetworkPolicy "${namespace}/${name}" is not in force, and what it would allow is closed: ${reason}`;
      }),
      ...[this.#file.problem, this.#log?.problem ?? this.#unlogged()].filter((problem) => problem !== undefined),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    // Its end ends a report that is under way, too.
    await this.#watch?.[Symbol.asyncDispose]();
    await this.#reports?.[Symbol.asyncDispose]();
    await this.#loop?.[Symbol.asyncDispose]();
    await this.#file[Symbol.asyncDispose]();
    this.#log?.[Symbol.dispose]();
  }

  #logged(): VerdictLog | undefined {
    const { log = "off", enforcement, dataDir, logger } = this.#options;
    if (log === "off" || enforcement.report === undefined) return undefined;
    const podOf = (owner: Owner): string | undefined => {
      const pod = this.#store.podOf(owner);
      return typeof pod === "object" ? podKey(pod) : undefined;
    };
    const isolationOf = (owner: Owner): Isolation | undefined => this.#isolated.get(ownerKey(owner));
    const made = new VerdictLog({ dataDir, podOf, isolationOf, logger });
    enforcement.report(log, (verdict) => made.add(verdict));
    return made;
  }

  #unlogged(): string | undefined {
    const { log = "off", enforcement } = this.#options;
    if (log === "off") return undefined;
    const why = enforcement.report === undefined ? "this data path does not report them" : enforcement.unreported;
    return why === undefined ? undefined : `Verdicts of network policies are not logged: ${why}`;
  }

  async #enforce(): Promise<undefined> {
    const wanted = this.#store.take();
    const known = [...this.#store.attachments].filter(({ owner }) => this.#store.isKnown(owner));
    const policies = [...this.#store.set.policies.values()];
    this.#file.changed();
    const refused = await this.#options.enforcement.enforce(wanted);
    this.#refused = refused;
    this.#isolated = wanted.isolated;
    this.#inForce = { rules: wanted.rules, statuses: statusesOf(policies, wanted.rules, refused) };
    this.#reports?.changed();
    for (const { name: of, failure } of this.#inForce.statuses)
      if (failure !== undefined)
        this.#options.events?.tell({ kind: "NetworkPolicy", of, reason: "NotEnforced", message: notEnforced(failure) });
    this.#settled = new Set(known.map(({ owner }) => ownerKey(owner)));
    for (const { owner } of known) {
      const key = ownerKey(owner);
      this.#waiting.get(key)?.();
      if (this.#late.delete(key))
        this.#options.logger.info("a pod that started isolated has its network policies now", ownerFields(owner));
    }
  }

  async #assumeLater(owner: Owner): Promise<void> {
    await pause(assumedAfterMs, this.#ended.signal);
    this.#store.assume(owner);
    this.#loop?.trigger();
  }

  #lastHeard(): string {
    if (this.#heardAtMs === undefined) return "never heard";
    return `last heard ${Math.round((performance.now() - this.#heardAtMs) / 1000)} s ago`;
  }
}

const isSamePod = (a: PodOf, b: PodOf): boolean =>
  typeof a === "string" || typeof b === "string" ? a === b : podKey(a) === podKey(b) && a.uid === b.uid;

const notEnforced = (failure: string): string =>
  `Not all of it is in force, and what it would allow is closed: ${failure}`;

/** How far these policies are in force. */
function statusesOf(
  policies: readonly KnownPolicy[],
  rules: ReadonlyMap<string, PodRule>,
  refused: readonly RefusedRule[],
): PolicyStatus[] {
  const failures = new Map(refused.map(({ id, reason }) => [rules.get(id)?.policy.uid, reason]));
  return policies.map(({ name, generation, refused: strange }) => {
    const failure = strange ?? failures.get(name.uid);
    return { name, generation, ...(failure === undefined ? {} : { failure }) };
  });
}

/** As many sentences as somebody reads. */
function some<T>(of: readonly T[], sentence: (one: T) => string): string[] {
  const told = of.slice(0, maxSentences).map(sentence);
  return of.length <= maxSentences ? told : [...told, `… and ${of.length - maxSentences} more like this`];
}
