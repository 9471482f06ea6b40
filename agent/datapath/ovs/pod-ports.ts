import { ownerFields, ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { waitForOfport } from "../../protocols/ovsdb/mod.ts";
import { allOf, within } from "./bounded.ts";
import type { ConnectedPod } from "./options.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { type FlowPort, type PodParts, partKey, ToldPods } from "./pod-parts.ts";
import { PodRows, type TenantPort } from "./pod-rows.ts";
import type { SwitchDatabase } from "./switch-database.ts";
import { type SwitchPresence, unlessAway } from "./switch-presence.ts";
import { isRefusal } from "./switch-program.ts";

/** Sets parts of the switch's program. */
export type SetParts = (parts: PodParts) => Promise<void>;

interface PodPortsOptions {
  readonly db: SwitchDatabase;
  readonly bridge: string;
  /** Of the switch; nobody waits for one that stays away. */
  readonly presence: Pick<SwitchPresence, "signal">;
  readonly logger: Logger;
}

/** How long a DEL waits for the switch to take its flows out; what takes longer is finished behind its back. */
const removalMs = 2_000;

/**
 * The ports of pods and their flows, as they should be. What the database or the switch does not take now is put right
 * by `settle`, which is called whenever either of them changes.
 */
export class PodPorts {
  readonly #db: SwitchDatabase;
  readonly #rows: PodRows;
  readonly #presence: Pick<SwitchPresence, "signal">;
  readonly #logger: Logger;
  readonly #wanted = new Map<string, TenantPort>();
  readonly #leaving = new Map<string, Owner>();
  /** Those that a call is at work on. */
  readonly #busy = new Set<string>();
  /** Numbers of ports that the switch is still to make. */
  readonly #asked = new Map<string, number>();
  readonly #told = new ToldPods();
  /** Why the switch does not take a pod's flows, by its key. */
  readonly #refused = new Map<string, string>();
  #program: { readonly context: PipelineContext; readonly set: SetParts } | undefined;

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

  /** Pods that the switch has no port or no flows for, and why, by their parts' keys. */
  get refused(): ReadonlyMap<string, string> {
    const portless = [...this.#wanted].flatMap(([key, { port, device }]) => {
      // One without a device yet is to get it later, and has no port until then.
      const problem = device === undefined ? undefined : this.#rows.problemOf(port);
      return problem === undefined ? [] : [[partKey(key), problem] as const];
    });
    return new Map([...[...this.#refused].map(([key, why]) => [partKey(key), why] as const), ...portless]);
  }

  get wanted(): Iterable<TenantPort> {
    return this.#wanted.values();
  }

  isWanted(owner: Owner): boolean {
    return this.#wanted.has(ownerKey(owner));
  }

  /** What the flows of a pod are made of, where it has a port that the switch has made. */
  flowPortOf(owner: Owner): FlowPort | undefined {
    return this.#flowPort(ownerKey(owner));
  }

  /** Takes over what an earlier agent has left: `keep` says what is still wanted. Answers the parts for those. */
  adopt(context: PipelineContext, keep: (pod: ConnectedPod) => boolean): PodParts {
    for (const { owner, port, row } of this.#rows.all()) {
      const isWanted = port !== undefined && keep(port);
      if (isWanted) this.#wanted.set(ownerKey(owner), port);
      else this.#leaving.set(ownerKey(owner), owner);
      if (!isWanted) this.#logger.warn("a port that nothing stands behind is removed", { port: row.name });
    }
    return this.#told.changed(context, this.#flowPorts(this.#wanted.keys()));
  }

  /** From now on changes go to the program; with another context than before, all of it at the next `settle`. */
  follow(context: PipelineContext, set: SetParts): void {
    if (this.#program !== undefined) this.#told.forget();
    this.#program = { context, set };
  }

  /** @throws {OvsdbError | CniError} */
  async connect(port: TenantPort, when: "now" | "later"): Promise<void> {
    const key = ownerKey(port.owner);
    const tell = (): Promise<void> => this.#unlessAway(this.#tell([key]));
    this.#busy.add(key);
    try {
      this.#leaving.delete(key);
      this.#wanted.set(key, port);
      const number = this.#rows.numberFor(port.port);
      if (when === "later") {
        await this.#rows.put(port, number);
        // Its number may have come while nobody was told, as this call saw to the port.
        this.#busy.delete(key);
        return await tell();
      }
      this.#asked.set(key, number);
      // Flows may name a port that is still to come: switch and database are at work together.
      await allOf([this.#make(port, number), tell()]);
      this.#asked.delete(key);
      // Only where the switch has given it another number.
      await tell();
    } finally {
      this.#asked.delete(key);
      this.#busy.delete(key);
    }
  }

  async #make(port: TenantPort, number: number): Promise<void> {
    await this.#rows.put(port, number);
    const { signal } = this.#presence;
    await this.#unlessAway(waitForOfport(this.#db, { name: port.port }, { signal }));
  }

  #unlessAway<T>(work: Promise<T>): Promise<T> {
    return unlessAway(this.#presence.signal, work);
  }

  /** `false` where `settle` is to go on with it. */
  async disconnect(owner: Owner): Promise<boolean> {
    const key = ownerKey(owner);
    this.#wanted.delete(key);
    this.#refused.delete(key);
    this.#leaving.set(key, owner);
    return this.#remove([[key, owner]]);
  }

  /** Whether nothing is to be done about a port of this name: a call sees to it just now, or it is no pod's. */
  isSeenTo(name: string): boolean {
    for (const [key, { port }] of this.#wanted) if (port === name) return this.#busy.has(key);
    const owner = this.#rows.ownerOf(name);
    return owner === undefined || !this.#isStray(owner, name);
  }

  /** A project has another VNID. */
  async retenant(port: TenantPort, vnid: number): Promise<void> {
    const key = ownerKey(port.owner);
    if (this.#wanted.get(key) !== port) return;
    const changed = { ...port, vnid };
    this.#wanted.set(key, changed);
    await this.#tell([key]);
    await this.#rows.put(changed, this.#rows.numberFor(port.port));
  }

  /** Brings database and program to what is wanted. @throws {OvsdbError | CniError} */
  async settle(): Promise<void> {
    const leaving = [...this.#leaving].filter(([key]) => !this.#busy.has(key));
    const isClean = await this.#remove(leaving);
    await this.#removeStrays();
    const standing = new Set(this.#rows.all().map(({ owner }) => ownerKey(owner)));
    const missing = [...this.#wanted].filter(([key]) => !standing.has(key) && !this.#busy.has(key));
    const making = missing.map(([, port]) => {
      this.#logger.warn("a pod's port that is gone is made again", ownerFields(port.owner));
      return this.#rows.put(port, this.#rows.numberFor(port.port));
    });
    await allOf([...making, this.#tell([...this.#wanted.keys()].filter((key) => !this.#busy.has(key)))]);
    if (isClean) return;
    const is = `${this.#leaving.size} stand, wanted them gone`;
    throw new CniError(CniCode.tryAgainLater, `Cannot remove the ports of pods that have left: ${is}`);
  }

  /**
   * What was given up while the database did not answer it may still carry out once it can: then a port stands that
   * nobody has asked for any more, which no DEL will name.
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

  /** Flows first: the switch answers for them at once, and for nothing while it lets go of a device. */
  async #remove(leaving: readonly (readonly [string, Owner])[]): Promise<boolean> {
    if (leaving.length === 0) return true;
    const owners = leaving.map(([, owner]) => owner);
    const parts = this.#told.gone(leaving.map(([key]) => key));
    // What the switch does not hear of now it hears of before anything that is set later.
    if (parts.size > 0 && this.#program !== undefined)
      await within(removalMs, "take pods' flows out", this.#unlessAway(this.#program.set(parts))).catch(
        (caught: unknown) => this.#tellLate("flows of pods go once the switch can be reached", owners, caught),
      );
    // One that has come back meanwhile has its port again.
    const left = owners.filter((owner) => this.#leaving.has(ownerKey(owner)));
    const isGone = await this.#rows.remove(left, removalMs).then(
      () => true,
      (caught: unknown) => this.#tellLate("ports of pods go once the database can be reached", owners, caught),
    );
    if (isGone) for (const [key] of leaving) this.#leaving.delete(key);
    return isGone;
  }

  /** The pod's interface goes all the same, so that nothing reaches it. */
  #tellLate(what: string, owners: readonly Owner[], caught: unknown): false {
    const containers = owners.map(({ sandboxId }) => sandboxId);
    this.#logger.warn(what, { containers, error: reasonOf(caught) });
    return false;
  }

  async #tell(keys: readonly string[]): Promise<void> {
    const { context, set } = this.#program ?? {};
    if (context === undefined || set === undefined) return;
    const parts = this.#told.changed(context, this.#flowPorts(keys));
    if (parts.size === 0) return;
    try {
      await set(parts);
      for (const key of keys) this.#refused.delete(key);
    } catch (caught) {
      this.#told.doubt(parts);
      const [only] = keys.length === 1 ? keys : [];
      if (only !== undefined && isRefusal(caught) && this.#wanted.has(only)) this.#refused.set(only, caught.message);
      if (!isRefusal(caught) || only !== undefined) throw caught;
      // One that is refused costs the others nothing.
      await allOf(keys.map((key) => this.#tell([key])));
    }
  }

  *#flowPorts(keys: Iterable<string>): Iterable<readonly [string, FlowPort]> {
    for (const key of keys) {
      const port = this.#flowPort(key);
      if (port !== undefined) yield [key, port];
    }
  }

  #flowPort(key: string): FlowPort | undefined {
    const port = this.#wanted.get(key);
    if (port === undefined) return undefined;
    const ofport = this.#rows.ofportOf(port.port) ?? this.#asked.get(key);
    return ofport === undefined || ofport === 0 ? undefined : { ...port, ofport };
  }
}
