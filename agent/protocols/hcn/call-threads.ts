import { Worker } from "node:worker_threads";
import { reasonOf } from "../../../shared/reason.ts";
import { CallMarks } from "./call-marks.ts";
import type { HcnOutcome, HcnTask } from "./call-server.ts";
import { HcnError } from "./hcn-error.ts";

export interface CallThreadOptions {
  /** First file of a thread: it serves calls (`call-server.ts`). */
  readonly file: string | URL;
  /** How long a call may wait for a thread, and then how long it may take. */
  readonly deadlineMs: number;
  /** How many calls run at a time; abandoned ones do not count. */
  readonly threads: number;
  /** How many given-up calls may be outstanding. */
  readonly maxLeaked: number;
  /** Called once, when there are more: only the end of the process ends those threads. */
  readonly onLost: (reason: HcnError) => void;
}

interface Call {
  /** Continues "Cannot …". */
  readonly action: string;
  readonly task: HcnTask;
  readonly settle: (outcome: HcnOutcome) => void;
  readonly fail: (error: HcnError) => void;
  timer?: ReturnType<typeof setTimeout>;
}

/** `idle`: waits for a task. `busy`: its call is waited for. `leaked`: its call was abandoned and has not returned. */
type ThreadState = { readonly t: "idle" } | { readonly t: "busy"; readonly call: Call } | { readonly t: "leaked" };

interface Thread {
  readonly worker: Worker;
  readonly marks: CallMarks;
  state: ThreadState;
}

/**
 * Calls that may block, or never return, on threads of their own: a queue, and one call at a time on each. A call whose
 * deadline passes is abandoned: it rejects, its thread is left alone, and the next call gets another. A thread that
 * returns late has cleaned up after itself and is used again.
 */
export class CallThreads implements AsyncDisposable {
  readonly #options: CallThreadOptions;
  readonly #threads = new Set<Thread>();
  readonly #queue: Call[] = [];
  #isLost = false;
  #isClosed = false;

  constructor(options: CallThreadOptions) {
    this.#options = options;
  }

  /** Calls that were given up and have not come back; each keeps a thread. */
  get leaked(): number {
    return this.#in("leaked").length;
  }

  /** @param action continues "Cannot …". @throws {HcnError} */
  call(action: string, task: HcnTask): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(closed(action));
    return new Promise((resolve, reject) => {
      const call: Call = {
        action,
        task,
        settle: (outcome) => {
          clearTimeout(call.timer);
          if (outcome.t === "done") resolve(outcome.value);
          else reject(new HcnError({ action, ...outcome.failure }));
        },
        fail: (error) => {
          clearTimeout(call.timer);
          reject(error);
        },
      };
      this.#setDeadline(call);
      this.#queue.push(call);
      this.#begin();
    });
  }

  /** Rejects running calls. Waits only for threads that are not inside a native call. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const call of this.#queue.splice(0)) call.fail(closed(call.action));
    for (const { state, marks } of this.#threads) {
      marks.abandon();
      if (state.t === "busy") state.call.fail(closed(state.call.action));
    }
    await Promise.all(this.#in("idle").map((thread) => this.#end(thread)));
  }

  #setDeadline(call: Call): void {
    clearTimeout(call.timer);
    call.timer = setTimeout(() => this.#abandon(call), this.#options.deadlineMs);
  }

  /** Takes as many calls out of the queue as there are threads for them. */
  #begin(): void {
    while (this.#queue.length > 0) {
      if (this.#in("idle").length === 0 && this.#threads.size - this.leaked >= this.#options.threads) return;
      const call = this.#queue.shift()!;
      const thread = this.#in("idle")[0] ?? this.#start(call);
      if (thread === undefined) continue;
      // A new deadline: with the rest of the old one, calls that waited behind a hanging one would be abandoned as soon
      // as they begin, and each would leak a thread.
      this.#setDeadline(call);
      thread.state = { t: "busy", call };
      thread.worker.postMessage(call.task);
    }
  }

  /** A new thread; `undefined` where Windows gives none, which fails the call that it was for. */
  #start({ action, fail }: Call): Thread | undefined {
    const marks = new CallMarks();
    let worker: Worker;
    try {
      worker = new Worker(this.#options.file, { workerData: marks.memory });
    } catch (caught) {
      const is = reasonOf(caught);
      fail(new HcnError({ action, call: "", reason: `there is no thread for it (${is})` }));
      return undefined;
    }
    const thread: Thread = { worker, marks, state: { t: "idle" } };
    this.#threads.add(thread);
    // A thread keeps no process alive: while a call is waited for, its timer does.
    worker.unref();
    worker.on("message", (outcome: HcnOutcome) => this.#returned(thread, outcome));
    worker.on("error", (error) => this.#died(thread, reasonOf(error)));
    worker.on("exit", () => this.#died(thread, "it has ended"));
    return thread;
  }

  #returned(thread: Thread, outcome: HcnOutcome): void {
    const { state } = thread;
    thread.state = { t: "idle" };
    if (state.t === "busy") state.call.settle(outcome);
    // The thread was replaced while its call was hanging.
    const isExtra = this.#threads.size - this.leaked > this.#options.threads;
    if (this.#isClosed || isExtra) {
      void this.#end(thread);
      return;
    }
    thread.marks.reset();
    this.#begin();
  }

  #died(thread: Thread, reason: string): void {
    if (!this.#threads.delete(thread)) return;
    const { state, marks } = thread;
    if (state.t === "busy") {
      const { action } = state.call;
      const is = `the thread of the call is gone (${reason})`;
      state.call.fail(new HcnError({ action, call: marks.inside, reason: is }));
    }
    if (!this.#isClosed) this.#begin();
  }

  #abandon(call: Call): void {
    const { deadlineMs } = this.#options;
    const waiting = this.#queue.indexOf(call);
    if (waiting >= 0) {
      this.#queue.splice(waiting, 1);
      const reason = `no thread of ${this.#options.threads} was free within ${deadlineMs} ms`;
      call.fail(new HcnError({ action: call.action, call: "", reason, timedOut: true }));
      return;
    }
    const thread = this.#in("busy").find(({ state }) => state.t === "busy" && state.call === call);
    if (thread === undefined) return;
    thread.state = { t: "leaked" };
    thread.marks.abandon();
    const { inside } = thread.marks;
    const reason = `${inside || "the call"} has not returned within ${deadlineMs} ms; it may still take effect`;
    call.fail(new HcnError({ action: call.action, call: inside, reason, timedOut: true }));
    this.#checkLeaked(inside);
    this.#begin();
  }

  #checkLeaked(call: string): void {
    const { maxLeaked, onLost } = this.#options;
    if (this.leaked <= maxLeaked || this.#isLost) return;
    this.#isLost = true;
    const reason = `${this.leaked} calls have not come back, wanted at most ${maxLeaked}: only a new process is rid of them`;
    onLost(new HcnError({ action: "call HNS any longer", call, reason, timedOut: true }));
  }

  async #end(thread: Thread): Promise<void> {
    this.#threads.delete(thread);
    await thread.worker.terminate();
  }

  #in(t: ThreadState["t"]): Thread[] {
    return [...this.#threads].filter(({ state }) => state.t === t);
  }
}

const closed = (action: string): HcnError =>
  new HcnError({ action, call: "", reason: "the connection to HNS is being closed" });
