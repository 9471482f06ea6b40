import { abortable } from "../../../shared/async/abortable.ts";
import { ownerFields, ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { Flow } from "../../protocols/openflow/mod.ts";
import { waitForOfport } from "../../protocols/ovsdb/mod.ts";
import { AppliedPods, type PodOnSwitch, podKey } from "./applied-pods.ts";
import { PodRows } from "./database/pod-rows.ts";
import type { SwitchDatabase } from "./database/switch-database.ts";
import type { ConnectedPod, PodPort } from "./overlay-node.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { podFlows } from "./pipeline/mod.ts";
import { type FlowSetChanges, isRefusedFlowSet, type SwitchProgram } from "./program/flow-set.ts";
import { allOf, answeredWithin, type SwitchPresence } from "./switch-presence.ts";

interface PodPortsOptions {
  readonly db: SwitchDatabase;
  readonly bridge: string;
  /** Whether the switch is there, so that calls do not wait for one that stays away. */
  readonly presence: Pick<SwitchPresence, "signal">;
  readonly logger: Logger;
}

/** How long a DEL waits for the switch to delete flows; after that it is finished later. */
const removalMs = 2_000;

/**
 * The wanted ports and flows of pods. What the database or the switch does not accept now is repaired by `reconcile`,
 * which is called whenever either of them changes.
 */
export class PodPorts {
  readonly #db: SwitchDatabase;
  readonly #rows: PodRows;
  readonly #presence: Pick<SwitchPresence, "signal">;
  readonly #logger: Logger;
  readonly #wanted = new Map<string, PodPort>();
  readonly #leaving = new Map<string, Owner>();
  /** Owners with a running call. */
  readonly #busy = new Set<string>();
  /** Numbers of ports that the switch has yet to make. */
  readonly #asked = new Map<string, number>();
  readonly #applied = new AppliedPods();
  #program: { readonly context: PipelineContext; readonly set: SwitchProgram["set"] } | undefined;

  constructor({ db, bridge, presence, logger }: PodPortsOptions) {
    this.#presence = presence;
    this.#db = db;
    this.#rows = new PodRows(db, bridge);
    this.#logger = logger;
  }

  list(): readonly ConnectedPod[] {
    return this.#rows.all().flatMap(({ port }) => {
      if (port === undefined) return [];
      const [ofport, problem] = [this.#rows.ofportOf(port.port), this.#rows.problemOf(port.port)];
      return [{ ...port, ...(ofport === undefined ? {} : { ofport }), ...(problem === undefined ? {} : { problem }) }];
    });
  }

  /** Pods that the switch has no port or no flows for, and why, by the keys of their flow sets. */
  get refused(): ReadonlyMap<string, string> {
    const portless = [...this.#wanted].flatMap(([key, { port, device }]) => {
      // A pod without a device gets it later, and is not reported until then.
      const problem = device === undefined ? undefined : this.#rows.problemOf(port);
      return problem === undefined ? [] : [[podKey(key), problem] as const];
    });
    return new Map([...this.#applied.refusals, ...portless]);
  }

  get wanted(): Iterable<PodPort> {
    return this.#wanted.values();
  }

  isWanted(owner: Owner): boolean {
    return this.#wanted.has(ownerKey(owner));
  }

  /** The flows of a pod that has a port which the switch has made. */
  flowsOf(owner: Owner): readonly Flow[] {
    const pod = this.#onSwitch(ownerKey(owner));
    return pod === undefined || this.#program === undefined ? [] : podFlows(this.#program.context, pod);
  }

  /** By owner's key: the pod's interface, if its port has a number. */
  interfaceOf(key: string): PodOnSwitch | undefined {
    return this.#onSwitch(key);
  }

  /** Of pods whose ports have a number, by their owners' keys: the pod's MAC and that number. */
  onSwitch(): ReadonlyMap<string, { readonly mac: string; readonly port: number }> {
    const made = this.#allOnSwitch(this.#wanted.keys());
    return new Map(Iterator.from(made).map(([key, { mac, ofport }]) => [key, { mac, port: ofport }]));
  }

  /** Those, with all that is known of them. */
  connected(): readonly { readonly port: PodPort; readonly ofport: number }[] {
    return [...this.onSwitch()].flatMap(([key, { port: ofport }]) => {
      const port = this.#wanted.get(key);
      return port === undefined ? [] : [{ port, ofport }];
    });
  }

  /** Takes over the ports of an earlier agent that `keep` accepts, and answers their flow sets. */
  adopt(context: PipelineContext, keep: (pod: ConnectedPod) => boolean): FlowSetChanges {
    for (const { owner, port, row } of this.#rows.all()) {
      const isWanted = port !== undefined && keep(port);
      if (isWanted) this.#wanted.set(ownerKey(owner), port);
      else this.#leaving.set(ownerKey(owner), owner);
      if (!isWanted) this.#logger.warn("a port that nothing stands behind is removed", { port: row.name });
    }
    return this.#applied.changed(context, this.#allOnSwitch(this.#wanted.keys()));
  }

  /** From now on changes go to the program; after a change of context, everything at the next `reconcile`. */
  follow(context: PipelineContext, set: SwitchProgram["set"]): void {
    if (this.#program !== undefined) this.#applied.markDirty();
    this.#program = { context, set };
  }

  /**
   * `false` if `reconcile` has to finish it: others have changed the port while the call ran, which nobody else looks at.
   * @throws {OvsdbError | CniError}
   */
  async connect(port: PodPort, when: "now" | "later"): Promise<boolean> {
    const key = ownerKey(port.owner);
    const apply = (): Promise<void> => this.#unlessAway(this.#apply([key]));
    this.#busy.add(key);
    try {
      this.#leaving.delete(key);
      this.#wanted.set(key, port);
      const number = this.#rows.numberFor(port.port);
      if (when === "later") {
        await this.#rows.put(port, number);
        // The switch may have assigned the number meanwhile, which other code leaves to a running call.
        this.#busy.delete(key);
        await apply();
        return this.#isInForce(key);
      }
      this.#asked.set(key, number);
      const making = this.#make(port, number);
      // The transaction is written by now: to compute the flows takes as long as the switch needs to make the port.
      await Promise.resolve();
      // Flows may name a port that does not exist yet, so switch and database work in parallel.
      await allOf([making, apply()]);
      this.#asked.delete(key);
      // Only needed if the switch has chosen another number.
      await apply();
      return this.#isInForce(key);
    } finally {
      this.#asked.delete(key);
      this.#busy.delete(key);
    }
  }

  /** Whether database and program have of this pod what is wanted, as far as the switch has made its port. */
  #isInForce(key: string): boolean {
    const port = this.#wanted.get(key);
    if (port === undefined) return true;
    const pod = this.#onSwitch(key);
    const hasFlows = pod === undefined || this.#program === undefined || this.#applied.has(key, pod);
    return hasFlows && this.#rows.has(port);
  }

  async #make(port: PodPort, number: number): Promise<void> {
    await this.#rows.put(port, number);
    const { signal } = this.#presence;
    await this.#unlessAway(waitForOfport(this.#db, { name: port.port }, { signal }));
  }

  /** The result of `work`, unless the switch stays away. @throws {CniError} 11 then */
  async #unlessAway<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#presence;
    // If it is away already the call fails at once.
    if (signal.aborted) work.catch(() => undefined);
    signal.throwIfAborted();
    return abortable(work, signal);
  }

  /** `false` if `reconcile` has to finish it. */
  async disconnect(owner: Owner): Promise<boolean> {
    const key = ownerKey(owner);
    this.#wanted.delete(key);
    this.#leaving.set(key, owner);
    return this.#remove([[key, owner]]);
  }

  /** Whether a port of this name needs no action: a running call handles it, or it is no pod's. */
  isHandled(name: string): boolean {
    for (const [key, { port }] of this.#wanted) if (port === name) return this.#busy.has(key);
    const owner = this.#rows.ownerOf(name);
    return owner === undefined || !this.#isStray(owner, name);
  }

  /** Gives pods the VNIDs that their projects have now. @throws {OvsdbError | CniError} */
  async followVnids(known: ReadonlyMap<string, number>): Promise<void> {
    for (const [key, port] of [...this.#wanted]) {
      const vnid = known.get(port.pod?.namespace ?? "");
      if (vnid === undefined || vnid === port.vnid || this.#wanted.get(key) !== port) continue;
      const changed = { ...port, vnid };
      this.#wanted.set(key, changed);
      await this.#apply([key]);
      await this.#rows.put(changed, this.#rows.numberFor(port.port));
    }
  }

  /** Brings database and program to the wanted state. @throws {OvsdbError | CniError} */
  async reconcile(): Promise<void> {
    const leaving = [...this.#leaving].filter(([key]) => !this.#busy.has(key));
    const isClean = await this.#remove(leaving);
    await this.#removeStrays();
    const standing = new Set(this.#rows.all().map(({ owner }) => ownerKey(owner)));
    const missing = [...this.#wanted].filter(([key]) => !standing.has(key) && !this.#busy.has(key));
    const making = missing.map(([, port]) => {
      this.#logger.warn("a pod's port that is gone is made again", ownerFields(port.owner));
      return this.#rows.put(port, this.#rows.numberFor(port.port));
    });
    await allOf([...making, this.#apply([...this.#wanted.keys()].filter((key) => !this.#busy.has(key)))]);
    if (isClean) return;
    const is = `${this.#leaving.size} are still there`;
    throw new CniError(CniCode.tryAgainLater, `Cannot remove the ports of pods that have left: ${is}`);
  }

  /**
   * A transaction that was abandoned without an answer may still be carried out, and leave a port that nobody wants and
   * no DEL names.
   */
  async #removeStrays(): Promise<void> {
    const strays = this.#rows.all().filter(({ owner, row }) => this.#isStray(owner, row.name));
    for (const { row } of strays) this.#logger.warn("a port that nothing stands behind is removed", { port: row.name });
    await this.#rows.removeRows(strays);
  }

  #isStray(owner: Owner, name: string): boolean {
    const key = ownerKey(owner);
    return !this.#busy.has(key) && !this.#leaving.has(key) && this.#wanted.get(key)?.port !== name;
  }

  /** Flows first: the switch confirms them at once, while it does not answer as long as it releases a device. */
  async #remove(leaving: readonly (readonly [string, Owner])[]): Promise<boolean> {
    if (leaving.length === 0) return true;
    const owners = leaving.map(([, owner]) => owner);
    const changes = this.#applied.removed(leaving.map(([key]) => key));
    // Changes that cannot be applied now are applied before later ones.
    if (changes.size > 0 && this.#program !== undefined)
      await answeredWithin(removalMs, "take pods' flows out", this.#unlessAway(this.#program.set(changes))).catch(
        (caught: unknown) => this.#logLater("flows of pods go once the switch can be reached", owners, caught),
      );
    // A pod that was added again meanwhile has its port again.
    const left = owners.filter((owner) => this.#leaving.has(ownerKey(owner)));
    const isGone = await this.#rows.remove(left, removalMs).then(
      () => true,
      (caught: unknown) => this.#logLater("ports of pods go once the database can be reached", owners, caught),
    );
    if (isGone) for (const [key] of leaving) this.#leaving.delete(key);
    return isGone;
  }

  /** The pod's interface is deleted anyway, so nothing reaches it. */
  #logLater(what: string, owners: readonly Owner[], caught: unknown): false {
    const containers = owners.map(({ sandboxId }) => sandboxId);
    this.#logger.warn(what, { containers, error: reasonOf(caught) });
    return false;
  }

  async #apply(keys: readonly string[]): Promise<void> {
    if (this.#program === undefined) return;
    const { context, set } = this.#program;
    const changes = this.#applied.changed(context, this.#allOnSwitch(keys));
    if (changes.size === 0) return;
    try {
      await set(changes);
      this.#applied.confirm(keys);
    } catch (caught) {
      this.#applied.markDirty(changes);
      const [only] = keys.length === 1 ? keys : [];
      if (!isRefusedFlowSet(caught)) throw caught;
      if (only !== undefined) {
        this.#applied.refuse(only, caught.message);
        throw caught;
      }
      // Applied one by one, so that a refused one does not affect the others.
      await allOf(keys.map((key) => this.#apply([key])));
    }
  }

  *#allOnSwitch(keys: Iterable<string>): Iterable<readonly [string, PodOnSwitch]> {
    for (const key of keys) {
      const pod = this.#onSwitch(key);
      if (pod !== undefined) yield [key, pod];
    }
  }

  /** The data for a pod's flows, if its port has a number. */
  #onSwitch(key: string): PodOnSwitch | undefined {
    const port = this.#wanted.get(key);
    if (port === undefined) return undefined;
    const ofport = this.#rows.ofportOf(port.port) ?? this.#asked.get(key);
    return ofport === undefined || ofport === 0 ? undefined : { ...port, vnid: port.vnid ?? 0, ofport };
  }
}
