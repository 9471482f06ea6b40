import { LateSignal } from "../../async/late-signal.ts";
import { limits } from "../../limits.ts";
import type { TurnTaker } from "../http2/call-queue.ts";
import { HeldBytes, type RequestMemory } from "../http2/request-memory.ts";
import {
  encodeDone,
  encodePass,
  encodeTaken,
  type RequestHead,
  readHead,
  readVariables,
  requestHeadBytes,
} from "./forward-wire.ts";
import type { ForwardedCalls } from "./forwarded-calls.ts";
import type { Caller, Outcome } from "./run-forwarded.ts";

/**
 * The time from the first to the last byte of a request, which is sent in one piece; after that the sender has given
 * up.
 */
export const requestMs = 1_000;

export interface ForwardedOptions {
  readonly calls: ForwardedCalls;
  readonly memory: RequestMemory;
  /** The queue in which calls wait for their turn. */
  readonly turns: TurnTaker;
  /** Whether the peer may make root do something. */
  isTrusted(): boolean;
  /** Called when there is something to `take`, or the connection ends; must write before it returns. */
  flush(): void;
}

type State =
  | { readonly t: "head" }
  /**
   * So many bytes of texts follow. Without `head` they are only read to the end, because an answer sent before could
   * get lost.
   */
  | { readonly t: "texts"; readonly head: RequestHead | undefined; readonly textBytes: number }
  | { readonly t: "whole"; readonly head: RequestHead }
  | { readonly t: "atWork" }
  | { readonly t: "over" };

/**
 * The server's side of a connection that carries one forwarded call (`forward/PROTOCOL.md`), without any input or
 * output, like `ServerConnection` for gRPC: the caller passes what arrives to `receive` and sends what `take` gives.
 */
export class ForwardedConnection {
  readonly #options: ForwardedOptions;
  readonly #held: HeldBytes;
  readonly #gone = new LateSignal();
  #late: ReturnType<typeof setTimeout> | undefined;
  #state: State = { t: "head" };
  /** Of the head or the texts, whichever is due; absent: none that has to be kept. */
  #bytes: Uint8Array | undefined;
  /** How many of them have come. */
  #length = 0;
  #entered = false;
  #requests = 0;
  #answer: Uint8Array[] = [];

  constructor(options: ForwardedOptions) {
    this.#options = options;
    this.#held = new HeldBytes(options.memory);
  }

  get isHandling(): boolean {
    return this.#state.t === "whole" || this.#state.t === "atWork";
  }

  get heldBytes(): number {
    return this.#held.bytes;
  }

  get halfBytes(): number {
    return this.isHandling ? 0 : this.#held.bytes;
  }

  get requests(): number {
    return this.#requests;
  }

  get isOver(): boolean {
    return this.#state.t === "over";
  }

  get canWait(): boolean {
    return false;
  }

  /** Its client waits for this one answer and writes nothing more: the server may close. */
  get isLeft(): boolean {
    return false;
  }

  /** Bytes from the peer, cut anywhere. The array may be reused afterwards. */
  receive(chunk: Uint8Array): void {
    let taken = 0;
    if (this.#state.t === "head") {
      taken = this.#gather(chunk, 0, requestHeadBytes, true);
      if (this.#length === requestHeadBytes) this.#onHead();
    }
    if (this.#state.t === "texts") {
      const { head, textBytes } = this.#state;
      taken = this.#gather(chunk, taken, textBytes, head !== undefined);
      if (this.#length === textBytes) this.#onTexts(head);
    }
    // There is one call on a connection: a client that sends more is not ours.
    if (taken < chunk.length) this.#end();
    // Most requests come in one piece and need no timer.
    else if (this.#state.t === "head" || this.#state.t === "texts")
      this.#late ??= setTimeout(() => this.#end(), requestMs);
  }

  take(): Uint8Array | undefined {
    return this.#answer.shift();
  }

  /** The server stops. A running call is finished; an incomplete one is passed back, since none begins any more. */
  leave(): void {}

  refresh(): void {}

  refuseHalf(): void {
    if (this.#state.t !== "texts") return;
    this.#letGo();
    this.#state = { ...this.#state, head: undefined };
  }

  /** The peer has gone, or is to go. */
  ended(): void {
    clearTimeout(this.#late);
    this.#options.turns.leave(this);
    // A running call counts until it has ended.
    if (this.#state.t === "atWork") this.#gone.abort();
    else this.#letGo();
    this.#state = { t: "over" };
  }

  /** Its turn has come. */
  beginNext(): boolean {
    if (this.#state.t === "whole") this.#begin(this.#state.head);
    return false;
  }

  /**
   * Takes what comes behind `from`, up to `whole` bytes of the head or the texts.
   * @param isKept whether somebody reads them
   * @returns where the rest begins
   */
  #gather(chunk: Uint8Array, from: number, whole: number, isKept: boolean): number {
    const end = Math.min(chunk.length, from + whole - this.#length);
    if (isKept && end - from === whole) this.#bytes = chunk.slice(from, end);
    else if (isKept) {
      this.#bytes ??= new Uint8Array(whole);
      this.#bytes.set(chunk.subarray(from, end), this.#length);
    }
    this.#length += end - from;
    return end;
  }

  #onHead(): void {
    const read = readHead(this.#bytes ?? nothing);
    this.#bytes = undefined;
    this.#length = 0;
    if (read.t === "garbage") {
      this.#end();
      return;
    }
    const textBytes = read.t === "call" ? read.head.envBytes + read.head.stdinBytes : read.textBytes;
    const { calls, isTrusted } = this.#options;
    const isOurs = read.t === "call" && isTrusted() && calls.enter(read.head);
    this.#entered = isOurs;
    if (!isOurs || !this.#held.take(requestHeadBytes + textBytes)) {
      this.#letGo();
      this.#state = { t: "texts", head: undefined, textBytes };
      return;
    }
    this.#state = { t: "texts", head: read.head, textBytes };
  }

  #onTexts(head: RequestHead | undefined): void {
    clearTimeout(this.#late);
    this.#requests++;
    if (head === undefined) {
      this.#finish({ t: "pass" });
      return;
    }
    this.#state = { t: "whole", head };
    this.#options.turns.enter(this);
  }

  #begin(head: RequestHead): void {
    const { envBytes, face, startedUptimeMs, untilUptimeMs } = head;
    const texts = this.#bytes ?? nothing;
    const env = readVariables(texts.subarray(0, envBytes));
    this.#state = { t: "atWork" };
    if (env === undefined) {
      this.#finish({ t: "pass" });
      return;
    }
    const call = { env, stdin: texts.subarray(envBytes), face, startedUptimeMs, untilUptimeMs };
    const caller: Caller = {
      signal: this.#gone,
      taken: (moreMs) => this.#say(encodeTaken(Math.min(moreMs, limits.longestTimeoutMs))),
    };
    void this.#options.calls.run(call, caller).then((outcome) => this.#finish(outcome));
  }

  #finish(outcome: Outcome): void {
    // If the answer is too long, the caller has to find out the outcome itself, as if this process had ended during the
    // call.
    const answer = outcome.t === "done" ? encodeDone(outcome) : outcome.t === "pass" ? encodePass() : undefined;
    if (answer !== undefined) this.#say(answer);
    this.#letGo();
    if (this.#state.t === "over") return;
    this.#state = { t: "over" };
    this.#options.flush();
  }

  #say(bytes: Uint8Array): void {
    if (this.#state.t === "over") return;
    this.#answer.push(bytes);
    this.#options.flush();
  }

  #end(): void {
    if (this.#state.t === "over") return;
    this.ended();
    this.#options.flush();
  }

  #letGo(): void {
    this.#held.giveBack();
    this.#bytes = undefined;
    if (this.#entered) this.#options.calls.leave();
    this.#entered = false;
  }
}

const nothing = new Uint8Array(0);
