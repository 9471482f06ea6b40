import { CniCode, CniError } from "../../../../shared/errors.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import {
  type OpenFlowClient,
  OpenFlowError,
  type OpenFlowRequest,
  parseAddress,
} from "../../../protocols/openflow/mod.ts";
import { type Category, nextRound } from "../pipeline/cookie.ts";
import {
  isForeignChange,
  keepConnected,
  type ProgramBounds,
  programBounds,
  watchForeignChanges,
} from "./connection.ts";
import { type Drift, driftBeside, driftIn, driftText, type PartOfSwitch } from "./drift.ts";
import {
  type FlowSet,
  type FlowSetChanges,
  type KeyedFlowSet,
  keyFlowSet,
  messagesOf,
  type SwitchProgram,
} from "./flow-set.ts";
import type { KeyedChanges } from "./flow-sets.ts";
import { PendingCall, type PendingChange, PendingChanges } from "./pending-changes.ts";
import { StableIds } from "./stable-ids.ts";
import { isRefusedRequest, SwitchState } from "./switch-state.ts";

/** Stores the number of the last round, in a place that lives as long as the flows. */
export interface RoundStore {
  /** `undefined` where there was none yet. */
  loadRound(): Promise<number | undefined>;
  saveRound(round: number): Promise<void>;
}

export interface ProgramOptions {
  /** Where the bridge listens, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly rounds: RoundStore;
  /** Called when the switch is connected and complete, and when it is lost. */
  readonly onStatus?: (status: ProgramStatus) => void;
  /**
   * Called when somebody else may have changed the switch, so that it has to be checked; never for this program's own
   * changes.
   */
  readonly onForeignChange?: () => void;
  /** Called once with the reason if the switch does not report others' changes. */
  readonly onUnwatched?: (reason: string) => void;
  readonly bounds?: Partial<ProgramBounds>;
}

export interface ProgramStatus {
  /** The switch is connected, and everything is installed. */
  readonly connected: boolean;
  /** The last reason why it was not; empty if there was none. */
  readonly lastError: string;
  /** Flow sets that the switch refused when it was filled again, with the reason. */
  readonly refused: ReadonlyMap<string, string>;
}

/**
 * The switch's program over OpenFlow. While connected, changes are applied one after the other, and waiting ones
 * together in one bundle. When a connection ends, the state of the switch is unknown: the next one installs everything
 * again, and until then changes are only kept.
 */
export class OpenFlowProgram implements SwitchProgram, AsyncDisposable {
  readonly round: number;
  readonly #bounds: ProgramBounds;
  readonly #state: SwitchState;
  readonly #objects = new StableIds();
  readonly #onStatus: ((status: ProgramStatus) => void) | undefined;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  readonly #waiting = new PendingChanges();
  #finishing: PendingCall | undefined;
  /** Of the round that is to be finished, what stays. */
  #spared: Category | undefined;
  /** Calls that wait for a comparison with the switch. */
  #looking: Look[] = [];
  /** The flows of earlier rounds are gone, so any other flow is foreign from now on. */
  #isFinished = false;
  #client: OpenFlowClient | undefined;
  #wake = Promise.withResolvers<void>();
  /** A connection is in use, which applies waiting changes. */
  #isUp = false;
  #connections = 0;
  #isFilled = false;
  #isClosed = false;
  #onUnwatched: ((reason: string) => void) | undefined;
  #lastError = "";

  /**
   * Begins a new round and connects. Each start has a new number, which is saved before any flow has it; flows of
   * earlier starts, also of failed ones, stay until this one has installed its own.
   * @throws what `rounds` throws
   */
  static async start(options: ProgramOptions): Promise<OpenFlowProgram> {
    parseAddress(options.management, isWindows);
    const round = nextRound(await options.rounds.loadRound());
    await options.rounds.saveRound(round);
    return new OpenFlowProgram(options, round);
  }

  private constructor({ management, bounds, onStatus, onForeignChange, onUnwatched }: ProgramOptions, round: number) {
    this.#bounds = { ...programBounds, ...bounds };
    this.#state = new SwitchState(round, this.#bounds);
    this.#onStatus = onStatus;
    this.#onUnwatched = onUnwatched;
    this.round = round;
    this.#running = keepConnected({
      management,
      bounds: this.#bounds,
      closing: this.#closing.signal,
      serve: (client) => this.#serve(client),
      onEvent: (event) => {
        if (isForeignChange(event)) onForeignChange?.();
      },
      down: (reason) => this.#down(reason),
    });
  }

  get status(): ProgramStatus {
    return { connected: this.#isFilled, lastError: this.#lastError, refused: this.#state.refused };
  }

  /** Connections so far. */
  get connections(): number {
    return this.#connections;
  }

  /** How many flows the switch is to have, by the number of their table. */
  get sizes(): ReadonlyMap<number, number> {
    return this.#state.flowSets.sizes;
  }

  async set(given: FlowSetChanges): Promise<void> {
    const [first] = given.keys();
    const action = `put ${given.size === 1 ? `"${first}"` : `${given.size} sets of flows`} into the switch`;
    this.#requireOpen(action);
    const changes = new Map([...given].map(([key, flowSet]) => [key, this.#place(key, flowSet)]));
    if (!this.#isUp) this.#keep(changes);
    this.#requireRoom(action);
    const messages = [...changes.values()].reduce(
      (sum, flowSet) => sum + (flowSet === undefined ? 1 : messagesOf(flowSet)),
      0,
    );
    const call = new PendingCall(action, this.#bounds.setMs, () => this.#problem);
    this.#waiting.add({ changes, messages, call, isKept: !this.#isUp });
    this.#wake.resolve();
    return call.done;
  }

  /**
   * To be called once all flow sets of this start are set: deletes flows of earlier rounds and unused groups. If it
   * fails it is done as soon as the switch can be reached.
   * @param spared a category that is not complete yet: its flows stay until it is called once more without
   * @throws {CniError} 11
   */
  async finishRound(spared?: Category): Promise<void> {
    const action = "take the flows of earlier rounds out of the switch";
    this.#requireOpen(action);
    this.#spared = spared;
    // A call that timed out is still pending; this call may still get its result.
    if (this.#finishing?.isOver !== false) {
      this.#finishing = new PendingCall(action, this.#bounds.finishMs, () => this.#problem);
    }
    this.#wake.resolve();
    return this.#finishing.done;
  }

  /** Sends requests without an answer, such as packets; does nothing if the switch is away. */
  post(requests: readonly OpenFlowRequest[]): void {
    if (!this.#isFilled) return;
    try {
      for (const request of requests) this.#client?.post(request);
    } catch (caught) {
      // The connection is just ending.
      if (!(caught instanceof OpenFlowError)) throw caught;
    }
  }

  /**
   * What others have changed in the switch, in sentences; nothing while it is away, or while flows of earlier rounds
   * may still exist. It reads every flow and delays changes meanwhile, with ten thousand flows for a second on a busy
   * machine.
   * @param repair whether to repair the differences
   * @param part of which differences are told; absent: all
   * @throws {CniError} 11 where the connection ends meanwhile, 102 where the switch refuses the repair
   */
  async compare(repair: boolean, part?: PartOfSwitch): Promise<readonly string[]> {
    if (!this.#isFilled || !this.#isFinished || this.#isClosed) return [];
    const look = { repair, ...Promise.withResolvers<Drift>() };
    this.#looking.push(look);
    this.#wake.resolve();
    const drift = await look.promise;
    return driftText(part === undefined ? drift : driftIn(part, drift));
  }

  /** The flows stay. What waits fails. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#closing.abort();
    await this.#running;
    for (const { call } of this.#waiting.take(this.#waiting.count)) call.fail(gone("finish the change of the switch"));
    this.#finishing?.fail(gone("finish the round of the switch"));
    this.#endLooks("the agent stops");
  }

  get #problem(): string {
    return this.#lastError === "" ? "it has not answered yet" : this.#lastError;
  }

  #place(key: string, flowSet: FlowSet | undefined): KeyedFlowSet | undefined {
    if (flowSet !== undefined) return keyFlowSet(key, flowSet, this.round, this.#objects.of(key));
    this.#objects.release(key);
    return undefined;
  }

  /** @throws {CniError} 102 if it conflicts with another flow set */
  #keep(changes: KeyedChanges): void {
    const kept = this.#state.keep(changes);
    if (kept instanceof CniError) throw kept;
  }

  #requireOpen(action: string): void {
    if (this.#isClosed) throw gone(action);
  }

  #requireRoom(action: string): void {
    if (this.#waiting.count < this.#bounds.waitingCalls) return;
    // While there is a connection, some of them are under way.
    if (!this.#isUp) this.#waiting.dropOver();
    if (this.#waiting.count < this.#bounds.waitingCalls) return;
    const is = `${this.#waiting.count} changes wait for it (${this.#problem})`;
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}`);
  }

  #down(reason: string): void {
    this.#isUp = false;
    this.#client = undefined;
    if (this.#isClosed) return;
    this.#lastError = reason;
    this.#endLooks(reason);
    for (const change of this.#waiting) {
      if (change.isKept) continue;
      const kept = this.#state.keep(change.changes);
      if (kept instanceof CniError) change.call.fail(kept);
      change.isKept = true;
    }
    this.#tell(false);
  }

  #tell(isFilled: boolean): void {
    if (this.#isFilled === isFilled) return;
    this.#isFilled = isFilled;
    this.#onStatus?.(this.status);
  }

  /** Uses a connection until it ends, which it throws. */
  async #serve(client: OpenFlowClient): Promise<never> {
    // From here on new changes are queued; all earlier ones are part of the fill.
    this.#connections++;
    this.#isUp = true;
    this.#client = client;
    const before = this.#waiting.count;
    await this.#watch(client);
    await this.#state.fill(client);
    for (const { changes, call } of this.#waiting.take(before)) this.#end(changes, call);
    this.#tell(true);
    let lost: OpenFlowError | undefined;
    void client.closed.then((error) => {
      lost = error;
      this.#wake.resolve();
    });
    while (lost === undefined) {
      this.#wake = Promise.withResolvers();
      while (this.#waiting.count > 0) await this.#putNext(client);
      await this.#finish(client);
      await this.#look(client);
      await this.#wake.promise;
    }
    throw lost;
  }

  /** Before the fill, so that all later changes by others are reported. */
  async #watch(client: OpenFlowClient): Promise<void> {
    const reason = await watchForeignChanges(client);
    if (reason === undefined) return;
    this.#onUnwatched?.(reason);
    this.#onUnwatched = undefined;
  }

  #end(changes: KeyedChanges, call: PendingCall): void {
    const refused = [...changes.keys()].find((key) => this.#state.refused.has(key));
    if (refused === undefined) call.end();
    else call.fail(new CniError(CniCode.interfaceFailure, this.#state.refused.get(refused) ?? ""));
  }

  /**
   * Applies waiting changes in one bundle; if it is refused, each separately, so that one does not affect the others.
   */
  async #putNext(client: OpenFlowClient): Promise<void> {
    const batch = this.#waiting.batch(this.#bounds.bundleMessages);
    if (batch.length > 1 && (await this.#put(client, batch)) === undefined) {
      for (const { call } of this.#waiting.take(batch.length)) call.end();
      return;
    }
    for (const change of batch) {
      const refusal = await this.#put(client, [change]);
      this.#waiting.take(1);
      if (refusal === undefined) change.call.end();
      else change.call.fail(refusal);
    }
  }

  async #put(client: OpenFlowClient, batch: readonly PendingChange[]): Promise<CniError | undefined> {
    // If this throws the connection is lost, and it is unknown whether the switch has the change.
    for (const change of batch) change.isKept = true;
    const refusal = await this.#state.put(client, new Map(batch.flatMap(({ changes }) => [...changes])));
    if (refusal !== undefined) for (const change of batch) change.isKept = false;
    return refusal;
  }

  async #finish(client: OpenFlowClient): Promise<void> {
    if (this.#finishing === undefined) return;
    const finishing = this.#finishing;
    const spared = this.#spared;
    await this.#state.finish(client, spared);
    // What was spared may have become complete meanwhile.
    if (spared !== this.#spared) return await this.#finish(client);
    this.#isFinished = true;
    finishing.end();
    this.#finishing = undefined;
  }

  /** One comparison answers all waiting calls, since it begins after they came. */
  async #look(client: OpenFlowClient): Promise<void> {
    const looks = this.#looking.splice(0);
    if (looks.length === 0) return;
    try {
      const found = await this.#state.compare(client);
      const drift = this.#spared === undefined ? found : driftBeside(this.#spared, found);
      if (looks.some(({ repair }) => repair)) {
        await this.#state.configure(client);
        if (driftText(drift).length > 0) await this.#state.repair(client, drift);
      }
      for (const { resolve } of looks) resolve(drift);
    } catch (caught) {
      const action = "compare the switch with what it should have";
      const error = reasonOf(caught);
      for (const { reject } of looks)
        reject(new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${error}`, { cause: caught }));
      if (!isRefusedRequest(caught)) throw caught;
    }
  }

  #endLooks(reason: string): void {
    const is = `Cannot compare the switch with what it should have: ${reason}`;
    for (const { reject } of this.#looking.splice(0)) reject(new CniError(CniCode.tryAgainLater, is));
  }
}

interface Look extends PromiseWithResolvers<Drift> {
  readonly repair: boolean;
}

const gone = (action: string): CniError => new CniError(CniCode.tryAgainLater, `Cannot ${action}: the agent stops`);
