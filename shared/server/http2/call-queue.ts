import { limits } from "../../limits.ts";
import type { Waiting } from "../turns.ts";
import type { ServerStream } from "./server-stream.ts";

/** Decides which connection's next call begins: `Turns`. */
export interface TurnTaker {
  enter(one: Waiting): void;
  leave(one: Waiting): void;
}

/**
 * The calls of one connection from the end of their requests to the end of their answers. A call begins only when its
 * answer could be sent, and only a bounded number runs, counting unread answers: a client that does not read gets no
 * more work done.
 */
export class CallQueue implements Waiting {
  readonly #turns: TurnTaker;
  /** Streams whose window is closed, so that the peer takes no answer. */
  readonly #deaf = new Set<ServerStream>();
  readonly #waiting = new Set<ServerStream>();
  readonly #atWork = new Set<ServerStream>();

  constructor(turns: TurnTaker) {
    this.#turns = turns;
  }

  /** Whether a handler is at work, or a call waits for nothing but its turn. */
  get isHandling(): boolean {
    if (this.#canBegin) return true;
    for (const stream of this.#atWork) if (stream.isHandling) return true;
    return false;
  }

  /** The request of this stream is complete. */
  whole(stream: ServerStream): void {
    (stream.answer.window > 0 ? this.#waiting : this.#deaf).add(stream);
    if (this.#canBegin) this.#turns.enter(this);
  }

  /** The peer has widened this stream's window. */
  widened(stream: ServerStream): void {
    if (stream.answer.window > 0 && this.#deaf.delete(stream)) this.whole(stream);
  }

  beginNext(): boolean {
    const [stream] = this.#waiting;
    if (stream !== undefined && this.#canBegin) {
      this.#waiting.delete(stream);
      this.#atWork.add(stream);
      stream.begin();
    }
    return this.#canBegin;
  }

  /** The stream is over, whether its call has begun or not. */
  left(stream: ServerStream): void {
    this.#deaf.delete(stream);
    this.#waiting.delete(stream);
    if (this.#atWork.delete(stream) && this.#canBegin) this.#turns.enter(this);
    if (this.#waiting.size === 0) this.#turns.leave(this);
  }

  /** The peer has gone: none of its calls begins any more. */
  close(): void {
    this.#waiting.clear();
    this.#turns.leave(this);
  }

  get #canBegin(): boolean {
    return this.#waiting.size > 0 && this.#atWork.size < limits.callsAtWork;
  }
}
