import { CniCode, CniError } from "../../../../shared/errors.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import {
  type OpenFlowClient,
  OpenFlowError,
  type OpenFlowRequest,
  parseAddress,
} from "../../../protocols/openflow/mod.ts";
import { nextRound } from "../pipeline/cookie.ts";
import {
  isForeignChange,
  keepConnected,
  type ProgramBounds,
  programBounds,
  watchForeignChanges,
} from "./connection.ts";
import { type Drift, driftText } from "./drift.ts";
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

/** Keeps the number of the last round that has begun, where it outlives the agent as long as the flows do. */
export interface RoundStore {
  /** `undefined` where there was none yet. */
  loadRound(): Promise<number | undefined>;
  saveRound(round: number): Promise<void>;
}

export interface ProgramOptions {
  /** Where the bridge listens, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly rounds: RoundStore;
  /** Told when the switch is reached, with everything in it, and when it is lost. */
  readonly onStatus?: (status: ProgramStatus) => void;
  /** Somebody else may have changed the switch: a look tells. Never for what this program changes. */
  readonly onForeignChange?: () => void;
  /** The switch does not report what others change, and why; called once. */
  readonly onUnwatched?: (reason: string) => void;
  readonly bounds?: Partial<ProgramBounds>;
}

export interface ProgramStatus {
  /** The switch is reached, and has everything. */
  readonly connected: boolean;
  /** Why it was not, the last time; empty where it always was. */
  readonly lastError: string;
  /** Flow sets that the switch refused when it was filled anew, with the reason. */
  readonly refused: ReadonlyMap<string, string>;
}

/**
 * The switch's program over OpenFlow. While there is a connection, changes go in one after the other, those that wait
 * together in one bundle. A connection that ends takes along the knowledge of what the switch has: the next one begins
 * with everything, and until then changes are kept without it.
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
  /** Those that wait for a look at the switch. */
  #looking: Look[] = [];
  /** The flows of earlier rounds have gone: what is not this round's is somebody else's since. */
  #isFinished = false;
  #client: OpenFlowClient | undefined;
  #wake = Promise.withResolvers<void>();
  /** A connection is in use: what waits is put in by it. */
  #isUp = false;
  #isFilled = false;
  #isClosed = false;
  #onUnwatched: ((reason: string) => void) | undefined;
  #lastError = "";

  /**
   * Begins a round of its own and to connect. Each start has a new number, which is saved before any flow has it: the
   * flows of earlier starts, also of one that came to nothing, forward until this one has put in its own.
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
   * Said once all flow sets of this start are in: flows of earlier rounds go, and groups that no flow set names. What
   * fails now is done as soon as the switch can be reached all the same. @throws {CniError} 11
   */
  async finishRound(): Promise<void> {
    const action = "take the flows of earlier rounds out of the switch";
    this.#requireOpen(action);
    // One whose time was up is still to be done, and this call may be in time for it.
    if (this.#finishing?.isOver !== false) {
      this.#finishing = new PendingCall(action, this.#bounds.finishMs, () => this.#problem);
    }
    this.#wake.resolve();
    return this.#finishing.done;
  }

  /** Says what no answer is waited for, such as a packet; nothing where the switch is away. */
  post(requests: readonly OpenFlowRequest[]): void {
    if (!this.#isFilled) return;
    try {
      for (const request of requests) this.#client?.post(request);
    } catch (caught) {
      // A connection that ends just now.
      if (!(caught instanceof OpenFlowError)) throw caught;
    }
  }

  /**
   * What others have changed in the switch, in sentences; nothing while it is away, or while the flows of earlier rounds
   * may still be there. It reads every flow; no change goes in meanwhile, which with ten thousand is for a second on a busy machine.
   * @param repair puts it right too
   * @throws {CniError} 11 where the connection ends meanwhile, 102 where the switch refuses the repair
   */
  async compare(repair: boolean): Promise<readonly string[]> {
    if (!this.#isFilled || !this.#isFinished || this.#isClosed) return [];
    const look = { repair, ...Promise.withResolvers<Drift>() };
    this.#looking.push(look);
    this.#wake.resolve();
    return driftText(await look.promise);
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

  /** @throws {CniError} 102 where it contradicts another flow set */
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
    // From here on what comes waits for its turn; all that waited before is part of what is put in now.
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

  /** Before it is filled: whatever others change from then on is reported. */
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

  /** Those that wait, in one bundle; where it is refused each by itself, so that one costs the others nothing. */
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
    // Where this throws the connection has gone, and nobody knows whether the switch has it.
    for (const change of batch) change.isKept = true;
    const refusal = await this.#state.put(client, new Map(batch.flatMap(({ changes }) => [...changes])));
    if (refusal !== undefined) for (const change of batch) change.isKept = false;
    return refusal;
  }

  async #finish(client: OpenFlowClient): Promise<void> {
    if (this.#finishing === undefined) return;
    await this.#state.finish(client);
    this.#isFinished = true;
    this.#finishing.end();
    this.#finishing = undefined;
  }

  /** One look answers all that wait for one: none of them began before they came. */
  async #look(client: OpenFlowClient): Promise<void> {
    const looks = this.#looking.splice(0);
    if (looks.length === 0) return;
    try {
      const drift = await this.#state.compare(client);
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
