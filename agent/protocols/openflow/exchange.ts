import { type ErrorMessage, refusedBy } from "./error-message.ts";
import type { Message } from "./message.ts";
import { MalformedMessage, OpenFlowError } from "./openflow-error.ts";
import { MultipartAnswer, type MultipartRequest, type Request } from "./request.ts";

/** One or more requests whose answers belong together. It is told what comes under their numbers until it is over. */
export interface Exchange {
  /** Continues "Cannot …". */
  readonly action: string;
  /**
   * @param nth of the requests, by the order in which the exchange sent them
   * @returns whether it is over
   */
  answered(message: Message, nth: number): boolean;
  /** There will be no answer. */
  failed(error: OpenFlowError): void;
}

interface Waiting<T> {
  resolve(value: T): void;
  reject(reason: OpenFlowError): void;
}

/** What came is not what was asked for. */
export const unexpected = (action: string, is: string): OpenFlowError => new OpenFlowError("malformed", action, is);

/** One request, one answer. */
export class SingleExchange<T> implements Exchange {
  readonly action: string;
  readonly #read: (message: Message) => T | undefined;
  readonly #waiting: Waiting<T>;

  /** @param read answers `undefined` for a message that is not the answer */
  constructor(action: string, read: (message: Message) => T | undefined, waiting: Waiting<T>) {
    this.action = action;
    this.#read = read;
    this.#waiting = waiting;
  }

  answered(message: Message): boolean {
    if (message.t === "error") this.#waiting.reject(refusedBy(message, this.action));
    else {
      const value = this.#read(message);
      if (value === undefined) this.#waiting.reject(unexpected(this.action, `a message "${message.t}" came`));
      else this.#waiting.resolve(value);
    }
    return true;
  }

  failed(error: OpenFlowError): void {
    this.#waiting.reject(error);
  }
}

/** One request, an answer in parts. */
export class MultipartExchange<T> implements Exchange {
  readonly action: string;
  readonly #answer: MultipartAnswer<T>;
  readonly #waiting: Waiting<T[]>;

  constructor(request: MultipartRequest<T>, waiting: Waiting<T[]>) {
    this.action = request.action;
    this.#answer = new MultipartAnswer(request);
    this.#waiting = waiting;
  }

  answered(message: Message): boolean {
    if (message.t === "error") this.#waiting.reject(refusedBy(message, this.action));
    else if (message.t !== "multipart") {
      this.#waiting.reject(unexpected(this.action, `a message "${message.t}" came`));
    } else return this.#push(message.body);
    return true;
  }

  failed(error: OpenFlowError): void {
    this.#waiting.reject(error);
  }

  #push(body: Uint8Array): boolean {
    try {
      if (!this.#answer.push(body)) return false;
      this.#waiting.resolve(this.#answer.entries);
    } catch (caught) {
      if (!(caught instanceof MalformedMessage)) throw caught;
      this.#waiting.reject(unexpected(this.action, caught.message));
    }
    return true;
  }
}

/**
 * Requests that are answered only where they fail, and a barrier behind them: when that is answered, all are done
 * (OpenFlow 1.5.1, 7.3.8).
 */
export class BatchExchange implements Exchange {
  readonly #requests: readonly Request[];
  readonly #refused: OpenFlowError[] = [];
  readonly #waiting: Waiting<readonly OpenFlowError[]>;

  constructor(requests: readonly Request[], waiting: Waiting<readonly OpenFlowError[]>) {
    this.#requests = requests;
    this.#waiting = waiting;
  }

  get action(): string {
    return batchAction(this.#requests);
  }

  answered(message: Message, nth: number): boolean {
    if (message.t === "error") {
      const request = this.#requests[nth];
      if (request === undefined) this.#waiting.reject(refusedBy(message, `wait until it is done to ${this.action}`));
      else keep(this.#refused, message, request);
      return request === undefined;
    }
    if (message.t !== "barrier" || nth !== this.#requests.length) {
      this.#waiting.reject(unexpected(this.action, `a message "${message.t}" came`));
    } else this.#waiting.resolve(this.#refused);
    return true;
  }

  failed(error: OpenFlowError): void {
    this.#waiting.reject(error);
  }
}

/** Errors kept of one bundle or batch, the first ones: one wrong template repeats in every flow. */
export const errorsKept = 20;

export function keep(errors: OpenFlowError[], message: ErrorMessage, request: Request): void {
  if (errors.length < errorsKept) errors.push(refusedBy(message, request.action));
}

export function batchAction(requests: readonly Request[]): string {
  const [first] = requests;
  if (first === undefined) return "wait for the switch";
  return requests.length === 1 ? first.action : `make ${requests.length} changes`;
}
