import { limits } from "../../limits.ts";
import { MessageReader } from "../../rpc/message-frame.ts";
import type { Problem } from "../../rpc/rpc-error.ts";
import { GrpcCode } from "../../rpc/rpc-error.ts";
import { AnswerSender, answerHeadBlock, trailersBlock, trailersOnlyBlock } from "./answer.ts";
import type { RequestHead } from "./request-head.ts";
import type { HeldBytes } from "./request-memory.ts";

/** One call, as its handler sees it. Nothing here throws; sending after the end of a call has no effect. */
export interface ServerCall {
  readonly head: RequestHead;
  /** Whether the client has room for more than waits already. */
  readonly hasRoom: boolean;
  send(message: Uint8Array): void;
  /** Ends the answer. */
  finish(code: GrpcCode, message?: string): void;
}

/** The events of a call, for its handler. */
export interface CallListener {
  /** The request, once it is whole. The call counts as open until the promise, which must not fail, is settled. */
  request(message: Uint8Array): Promise<void>;
  /** Called once `hasRoom` is true again. */
  room(): void;
  /** The caller has gone; nobody reads what is sent. */
  gone(): void;
}

/** The events of a stream, for its connection. */
export interface StreamOwner {
  /** Its request is complete, and its call may begin. */
  whole(stream: ServerStream): void;
  /** It has something to send, with `bytes` more of messages. */
  wrote(stream: ServerStream, bytes: number): void;
  /** Both the peer and the handler are done with it. */
  left(stream: ServerStream): void;
  /** Answers a header block with the prefix that it needs. */
  blockOf(block: Uint8Array): Uint8Array;
}

/** One stream of a connection: a request with one message, its answer, and which sides are done with it. */
export class ServerStream implements ServerCall {
  readonly id: number;
  readonly head: RequestHead;
  readonly answer: AnswerSender;
  listener: CallListener | undefined;
  /** Received bytes of DATA that no WINDOW_UPDATE has returned yet. */
  consumed = 0;
  readonly #owner: StreamOwner;
  readonly #request = new MessageReader(limits.messageBytes, "request");
  readonly #held: HeldBytes;
  #begun = false;
  #finished = false;
  #requestEnded = false;
  /** The request while its call waits for its turn. */
  #message: Uint8Array | undefined;
  #handling = false;
  #closed = false;

  /** @param held what its headers take already */
  constructor(id: number, head: RequestHead, windowBytes: number, owner: StreamOwner, held: HeldBytes) {
    this.id = id;
    this.head = head;
    this.#held = held;
    this.answer = new AnswerSender(id, windowBytes);
    this.#owner = owner;
  }

  get hasRoom(): boolean {
    return this.answer.waiting <= limits.streamRoomBytes;
  }

  get heldBytes(): number {
    return this.#held.bytes;
  }

  /** Whether the request has ended. */
  get requestEnded(): boolean {
    return this.#requestEnded;
  }

  /** Whether the stream only waits for its handler. */
  get isHandling(): boolean {
    return this.#handling && !this.#finished;
  }

  send(message: Uint8Array): void {
    if (this.#finished || this.#closed) return;
    if (!this.#begun) this.answer.begin(this.#owner.blockOf(answerHeadBlock));
    this.#begun = true;
    const before = this.answer.waiting;
    this.answer.message(message);
    this.#owner.wrote(this, this.answer.waiting - before);
  }

  finish(code: GrpcCode, message = ""): void {
    if (this.#finished || this.#closed) return;
    this.#finished = true;
    const block = this.#begun ? trailersBlock(code, message) : trailersOnlyBlock(code, message);
    this.answer.end(this.#owner.blockOf(block));
    this.#owner.wrote(this, 0);
  }

  /** Ends a call whose request cannot be served. */
  refuse({ code, is }: Problem): void {
    if (this.#closed) return;
    this.finish(code, `Cannot serve ${this.head.path}: ${is}`);
    this.listener?.gone();
  }

  /** A part of the request. */
  receive(part: Uint8Array): void {
    if (this.#finished || this.#closed || part.length === 0) return;
    if (!this.#held.take(part.length)) {
      this.refuse({ code: GrpcCode.resourceExhausted, is: this.#held.problem });
      return;
    }
    const problem = this.#request.push(part);
    if (problem !== undefined) this.refuse(problem);
  }

  /** The request has ended. */
  endRequest(): void {
    this.#requestEnded = true;
    if (this.#finished || this.#closed || this.listener === undefined) return;
    const message = this.#request.message();
    if (message === undefined) {
      this.refuse({ code: GrpcCode.internal, is: "the request holds no whole message" });
      return;
    }
    this.#message = message;
    this.#owner.whole(this);
  }

  /** Its turn has come. An abandoned call ends here. */
  begin(): void {
    const message = this.#message;
    this.#message = undefined;
    if (message === undefined || this.#finished || this.#closed) return;
    this.#handling = true;
    void this.listener?.request(message).then(() => {
      this.#handling = false;
      this.#leave();
    });
  }

  /** The stream is over on the wire. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#finished) this.listener?.gone();
    this.#leave();
  }

  #leave(): void {
    if (this.#handling || !this.#closed) return;
    this.#held.close();
    this.#owner.left(this);
  }
}
