import { assert } from "../../../shared/assert.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { isObject, show } from "../../../shared/schema/json-fields.ts";
import { JsonSplitter, maxMessageBytes } from "./json-splitter.ts";
import { MalformedValue } from "./values.ts";

/** What waits to be written while the server does not read; beyond, the connection ends. */
const maxUnsentBytes = 64 * 1024 * 1024;
/** Requests without an answer: far more than the pods of a node. */
export const maxRequests = 4096;

/** What became of a request. */
export type Reply =
  | { readonly t: "result"; readonly result: unknown }
  | { readonly t: "error"; readonly error: unknown }
  /** The connection ended before. */
  | { readonly t: "gone"; readonly reason: string };

export type Settle = (reply: Reply) => void;
/** A message without an answer. It may throw `MalformedValue` for one that it cannot make out. */
export type Notify = (method: string, params: readonly unknown[]) => void;

/**
 * JSON-RPC 1.0 as RFC 7047 uses it (section 4): requests with answers in any order, `echo` from either side,
 * notifications. Bytes in and bytes out, without a socket or a clock. Each message is handled before the next one is
 * read, so an answer and a following update keep their order.
 */
export class JsonRpc {
  readonly #splitter: JsonSplitter;
  readonly #notify: Notify;
  readonly #running = new Map<number, Settle>();
  readonly #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  #lastId = 0;
  #fault: string | undefined;

  constructor(notify: Notify, maxBytes: number = maxMessageBytes) {
    this.#notify = notify;
    this.#splitter = new JsonSplitter(maxBytes);
  }

  /** Why the connection can be of no more use. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Requests that wait for their answer. */
  get running(): number {
    return this.#running.size;
  }

  /** @returns the request's id; `undefined`, without anything sent, where too much waits already or it is too long */
  request(method: string, params: readonly unknown[], settle: Settle): number | undefined {
    if (this.#fault !== undefined || this.#running.size >= maxRequests) return undefined;
    const id = this.#lastId + 1;
    if (!this.#send({ method, params, id })) return undefined;
    this.#lastId = id;
    this.#running.set(id, settle);
    return id;
  }

  /** Takes no answer to this request any more, and tells the server so: RFC 7047, section 4.1.4. */
  cancel(id: number): void {
    if (this.#running.delete(id)) this.#send({ method: "cancel", params: [id], id: null });
  }

  /** What came, cut anywhere. */
  receive(chunk: Uint8Array): void {
    if (this.#fault !== undefined) return;
    this.#splitter.push(chunk);
    for (let piece = this.#splitter.next(); piece !== undefined; piece = this.#splitter.next()) {
      if (piece.t === "fault") this.end(piece.is);
      else this.#read(piece.text);
      if (this.#fault !== undefined) return;
    }
  }

  /** The next bytes to write; empty for now. */
  front(): Uint8Array {
    return this.#unsent[0] ?? nothing;
  }

  /** So many bytes of `front` have been written. */
  wrote(bytes: number): void {
    const front = this.front();
    this.#unsentBytes -= bytes;
    if (bytes < front.length) this.#unsent[0] = front.subarray(bytes);
    else this.#unsent.shift();
  }

  /** There is nothing more to come: every request that waits is told. */
  end(reason: string): void {
    if (this.#fault !== undefined) return;
    this.#fault = reason;
    this.#unsent.length = 0;
    this.#unsentBytes = 0;
    const waiting = [...this.#running.values()];
    this.#running.clear();
    for (const settle of waiting) settle({ t: "gone", reason });
  }

  #send(message: Readonly<Record<string, unknown>>): boolean {
    const bytes = new TextEncoder().encode(JSON.stringify(message));
    if (bytes.length > maxMessageBytes) return false;
    if (this.#unsentBytes + bytes.length > maxUnsentBytes) return false;
    this.#unsent.push(bytes);
    this.#unsentBytes += bytes.length;
    return true;
  }

  #read(text: string): void {
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch (caught) {
      this.end(`a message is not JSON (${reasonOf(caught)})`);
      return;
    }
    // The splitter lets objects through only.
    assert(isObject(message), "a text in braces is an object");
    if (Object.hasOwn(message, "method")) this.#readRequest(message);
    else this.#readReply(message);
  }

  #readRequest({ method, params, id }: Readonly<Record<string, unknown>>): void {
    if (typeof method !== "string" || !Array.isArray(params))
      this.end(`a request has method ${show(method)} and parameters ${show(params)}`);
    else if (id === null || id === undefined) this.#readNotification(method, params);
    else {
      // RFC 7047, section 4.1.11: what came goes back.
      const answer = method === "echo" ? { result: params, error: null } : { result: null, error: "unknown method" };
      if (!this.#send({ id, ...answer })) this.end("the server asks without reading the answers");
    }
  }

  #readNotification(method: string, params: readonly unknown[]): void {
    try {
      this.#notify(method, params);
    } catch (caught) {
      if (!(caught instanceof MalformedValue)) throw caught;
      this.end(`a notification "${method}" cannot be read: ${caught.message}`);
    }
  }

  #readReply({ id, result, error }: Readonly<Record<string, unknown>>): void {
    const isError = error !== undefined && error !== null;
    // An answer to a cancelled request is ignored.
    if (typeof id !== "number" || !Number.isInteger(id) || id < 1 || id > this.#lastId)
      this.end(`an answer is to request ${show(id)}, which was never made`);
    else if (result === undefined && !isError) this.end("an answer has neither result nor error");
    else {
      const settle = this.#running.get(id);
      this.#running.delete(id);
      settle?.(isError ? { t: "error", error } : { t: "result", result });
    }
  }
}

const nothing = new Uint8Array(0);
