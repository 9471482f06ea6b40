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
   * So many bytes of texts have yet to come. Without `head` they are only read to the end, because an answer sent
   * before could get lost.
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
  #bytes: Uint8Array = new Uint8Array(requestHeadBytes);
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

  readonly canWait = false;

  /** Its client waits for this one answer and writes nothing more: the server may close. */
  readonly isLeft = false;

  /** Bytes from the peer, cut anywhere. The array may be reused afterwards. */
  receive(chunk: Uint8Array): void {
    let rest = chunk;
    if (this.#state.t === "head") {
      rest = this.#gather(rest, requestHeadBytes);
      if (this.#length === requestHeadBytes) this.#onHead();
    }
    if (this.#state.t === "texts") {
      const { head, textBytes } = this.#state;
      const end = requestHeadBytes + textBytes;
      rest = this.#gather(rest, end);
      if (this.#length === end) this.#onTexts(head);
    }
    // There is one call on a connection: a client that sends more is not ours.
    if (rest.length > 0) this.#end();
    // Most requests come in one piece and need no timer.
    else if (this.#state.t === "head" || this.#state.t === "texts")
      this.#late ??= setTimeout(() => this.#end(), requestMs);
  }

  take(): Uint8Array {
    return this.#answer.shift() ?? nothing;
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

  /** Stores what belongs to the first `end` bytes. @returns the rest */
  #gather(chunk: Uint8Array, end: number): Uint8Array {
    const part = chunk.subarray(0, end - this.#length);
    if (this.#state.t === "head" || (this.#state.t === "texts" && this.#state.head !== undefined))
      this.#bytes.set(part, this.#length);
    this.#length += part.length;
    return chunk.subarray(part.length);
  }

  #onHead(): void {
    const read = readHead(this.#bytes);
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
    const bytes = new Uint8Array(requestHeadBytes + textBytes);
    bytes.set(this.#bytes);
    this.#bytes = bytes;
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
    const texts = this.#bytes.subarray(requestHeadBytes);
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
    this.#bytes = nothing;
    if (this.#entered) this.#options.calls.leave();
    this.#entered = false;
  }
}

const nothing = new Uint8Array(0);
