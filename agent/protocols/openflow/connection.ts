import { BundleExchange, bundleAdd, bundleControl } from "./bundle.ts";
import { headerBytes, MessageType, wireVersion } from "./constants.ts";
import { type ErrorMessage, readError, refusedBy, typeOfCause } from "./error-message.ts";
import type { Exchange } from "./exchange.ts";
import { type FlowUpdate, type RequestForwarded, readFlowUpdates } from "./flow-monitor.ts";
import {
  BundleControl,
  type Features,
  type Frame,
  FrameReader,
  type Message,
  type PacketIn,
  readMessage,
} from "./message.ts";
import { MalformedMessage, OpenFlowError } from "./openflow-error.ts";
import { type Request, speaksOurVersion, writeHello, writeMessage } from "./request.ts";
import { WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

/** Handed to the socket and not yet taken by the switch: ten thousand flows are 2 MB. Beyond, requests are refused. */
const maxUnsentBytes = 64 * 1024 * 1024;
/** Requests without an answer yet; a bundle counts each of its messages. */
export const maxPendingRequests = 200_000;

/** What comes without having been asked for. */
export type ConnectionEvent =
  | RequestForwarded
  | FlowUpdate
  | PacketIn
  /** An error for a message without a waiting exchange: `cause` is its type. */
  | { readonly t: "refused"; readonly error: ErrorMessage; readonly cause: number | undefined }
  /** A message with invalid content, which is skipped. */
  | { readonly t: "unreadable"; readonly error: MalformedMessage };

export interface ConnectionOptions {
  /** That may wait to be sent. Absent: `maxUnsentBytes`. */
  readonly unsentBytes?: number;
  /** The number of the first request; the highest is followed by 1. Absent: 1. */
  readonly firstXid?: number;
  onEvent(event: ConnectionEvent): void;
  /** Told when there may be something to `take`. */
  wake(): void;
}

export type ConnectionState =
  /** Ours is sent, theirs is to come. */
  | { readonly t: "hello" }
  /** The version is agreed on, the switch has been asked what it is. */
  | { readonly t: "features" }
  | { readonly t: "open"; readonly features: Features }
  | { readonly t: "closed"; readonly error: OpenFlowError };

interface Running {
  readonly exchange: Exchange;
  /** Numbers of its requests on the wire, from `first` on; `offset` were sent before. */
  readonly first: number;
  readonly count: number;
  readonly offset: number;
}

/**
 * The controller's side of an OpenFlow connection without any input or output: hand in what arrives, send what `take`
 * gives, and call `expire` now and then. Nothing is thrown for what comes; a broken frame ends the connection.
 */
export class OpenFlowConnection {
  readonly #options: ConnectionOptions;
  readonly #unsentBytes: number;
  readonly #reader = new FrameReader();
  readonly #running = new Set<Running>();
  readonly #deadlines = new Map<Exchange, number>();
  #out = new WireWriter();
  #state: ConnectionState = { t: "hello" };
  #lastXid: number;
  #lastBundle = 0;
  #pending = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#lastXid = (options.firstXid ?? 1) - 1;
    this.#unsentBytes = options.unsentBytes ?? maxUnsentBytes;
    this.#out.bytes(writeHello());
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Bytes that are to be sent. */
  get waiting(): number {
    return this.#out.length;
  }

  /** Bytes from the switch, cut anywhere. The array may be reused afterwards. */
  receive(chunk: Uint8Array): void {
    try {
      for (const frame of this.#reader.push(chunk)) {
        if (this.#state.t === "closed") return;
        this.#onFrame(frame);
      }
    } catch (caught) {
      if (!(caught instanceof MalformedMessage)) throw caught;
      this.close(new OpenFlowError("malformed", "go on with the switch", caught.message));
    }
  }

  /** What is to be sent now, in one piece; empty when there is nothing. */
  take(): Uint8Array {
    const bytes = this.#out.done();
    if (bytes.length > 0) this.#out = new WireWriter();
    return bytes;
  }

  /**
   * Sends requests whose answers `exchange` is told of until it is over or late.
   * @throws {OpenFlowError} before anything is sent: closed, too much waiting, or not to be said in this version
   */
  start(exchange: Exchange, requests: readonly Request[], deadline: number): void {
    this.#send(exchange, requests, 0);
    this.#deadlines.set(exchange, deadline);
  }

  /** As `start`, for the requests of one bundle. */
  startBundle(
    requests: readonly Request[],
    deadline: number,
    waiting: { resolve(): void; reject(reason: OpenFlowError): void },
  ): void {
    this.#requireOpen(`send a bundle of ${requests.length}`);
    this.#lastBundle = (this.#lastBundle + 1) >>> 0;
    const bundle = this.#lastBundle;
    let sent = requests.length + 2;
    const control = (kind: number): Request => bundleControl(bundle, kind);
    const exchange: BundleExchange = new BundleExchange(
      requests,
      (kind) => {
        if (this.#state.t === "open") this.#send(exchange, [control(kind)], sent++);
      },
      waiting,
    );
    const messages = [
      control(BundleControl.OPEN_REQUEST),
      ...requests.map((request) =>
        bundleAdd(bundle, request, (writer, inner) => writeMessage(writer, inner, this.#lastXid)),
      ),
      control(BundleControl.CLOSE_REQUEST),
    ];
    this.start(exchange, messages, deadline);
  }

  /** Sends one that nobody waits for; where the switch refuses it, that is an event. @throws {OpenFlowError} */
  post(request: Request): void {
    this.#send(undefined, [request], 0);
  }

  /** Ends what has waited beyond its deadline. @returns the next deadline, `undefined` where nothing waits */
  expire(now: number): number | undefined {
    let next: number | undefined;
    for (const [exchange, deadline] of [...this.#deadlines]) {
      if (deadline > now) next = Math.min(next ?? deadline, deadline);
      else {
        exchange.failed(new OpenFlowError("late", exchange.action, "no answer came in time"));
        this.#finish(exchange);
      }
    }
    return next;
  }

  /** The switch has gone, or is to go: whatever waits fails with `error`'s reason. */
  close(error: OpenFlowError): void {
    if (this.#state.t === "closed") return;
    this.#state = { t: "closed", error };
    for (const exchange of [...this.#deadlines.keys()]) {
      exchange.failed(new OpenFlowError("lost", exchange.action, `the connection ended (${error.message})`));
      this.#finish(exchange);
    }
    this.#out = new WireWriter();
    this.#options.wake();
  }

  #onFrame(frame: Frame): void {
    if (this.#state.t === "hello") this.#onHello(frame);
    else if (this.#state.t === "features") this.#onFeatures(frame);
    else if (this.#state.t === "open") this.#onMessage(frame);
  }

  #onHello(frame: Frame): void {
    const body = frame.bytes.subarray(headerBytes);
    if (frame.type === MessageType.ERROR) {
      this.close(refusedBy(readError(new WireReader(body, "an error")), "agree on a version of OpenFlow"));
      return;
    }
    if (frame.type !== MessageType.HELLO) {
      throw new MalformedMessage("an OpenFlow message", `type ${frame.type} came first, wanted HELLO`);
    }
    if (!speaksOurVersion(frame.version, body)) {
      const is = `the switch speaks others up to ${frame.version}, wanted ${wireVersion}`;
      this.close(new OpenFlowError("unsupported", "agree on a version of OpenFlow", is));
      return;
    }
    this.#state = { t: "features" };
    this.#write({ action: "ask for the features", type: MessageType.FEATURES_REQUEST, body: () => undefined });
    this.#options.wake();
  }

  #onFeatures(frame: Frame): void {
    const message = this.#read(frame);
    if (message?.t === "features") {
      const { t: _, ...features } = message;
      this.#state = { t: "open", features };
      this.#options.wake();
    } else if (message?.t === "echo-request") this.#echo(frame, message.data);
    else if (message?.t === "error") this.close(refusedBy(message, "ask for the features"));
  }

  #onMessage(frame: Frame): void {
    const running = this.#find(frame.xid);
    const message = this.#read(frame, running?.exchange);
    if (message === undefined) return;
    if (message.t === "hello" || message.t === "other") return;
    if (message.t === "echo-request") {
      this.#echo(frame, message.data);
      return;
    }
    if (message.t === "request-forwarded" || message.t === "packet-in") {
      this.#options.onEvent(message);
      return;
    }
    if (running !== undefined) {
      const nth = frame.xid - running.first + running.offset;
      if (running.exchange.answered(message, nth)) this.#finish(running.exchange);
    } else if (message.t === "error") {
      this.#options.onEvent({ t: "refused", error: message, cause: typeOfCause(message) });
    } else if (message.t === "multipart") this.#onFlowUpdates(message.body);
  }

  #onFlowUpdates(body: Uint8Array): void {
    try {
      for (const update of readFlowUpdates(new WireReader(body, "changes of flows"))) this.#options.onEvent(update);
    } catch (caught) {
      if (!(caught instanceof MalformedMessage)) throw caught;
      this.#options.onEvent({ t: "unreadable", error: caught });
    }
  }

  /** `undefined` if its content is invalid: the waiting exchange fails, and the connection continues. */
  #read(frame: Frame, exchange?: Exchange): Message | undefined {
    if (frame.version !== wireVersion && frame.type !== MessageType.HELLO) {
      throw new MalformedMessage("an OpenFlow message", `its version is ${frame.version}, wanted ${wireVersion}`);
    }
    try {
      return readMessage(frame);
    } catch (caught) {
      if (!(caught instanceof MalformedMessage)) throw caught;
      if (exchange === undefined) this.#options.onEvent({ t: "unreadable", error: caught });
      else {
        exchange.failed(new OpenFlowError("malformed", exchange.action, caught.message));
        this.#finish(exchange);
      }
      return undefined;
    }
  }

  #echo(frame: Frame, data: Uint8Array): void {
    if (this.waiting > this.#unsentBytes) {
      this.close(new OpenFlowError("full", "answer the switch's echo", "it does not read what it is sent"));
      return;
    }
    const reply = { action: "answer an echo", type: MessageType.ECHO_REPLY };
    writeMessage(this.#out, { ...reply, body: (writer) => void writer.bytes(data) }, frame.xid);
    this.#options.wake();
  }

  #send(exchange: Exchange | undefined, requests: readonly Request[], offset: number): void {
    const action = exchange?.action ?? requests[0]?.action ?? "send";
    this.#requireOpen(action);
    const count = requests.length;
    if (this.waiting > this.#unsentBytes || this.#pending + count > maxPendingRequests) {
      const is = `${this.waiting} bytes and ${this.#pending} requests wait already`;
      throw new OpenFlowError("full", action, is);
    }
    // Numbers of one exchange lie side by side; 0 is never ours.
    if (this.#lastXid + count > 0xffffffff) this.#lastXid = 0;
    const first = this.#lastXid + 1;
    const start = this.#out.length;
    try {
      for (const request of requests) this.#write(request);
    } catch (caught) {
      // All or none of them.
      this.#out.cut(start);
      throw caught;
    }
    if (exchange !== undefined) {
      this.#running.add({ exchange, first, count, offset });
      this.#pending += count;
    }
    this.#options.wake();
  }

  #write(request: Request): void {
    this.#lastXid++;
    writeMessage(this.#out, request, this.#lastXid);
  }

  #requireOpen(action: string): void {
    if (this.#state.t === "open") return;
    const is =
      this.#state.t === "closed" ? `the connection ended (${this.#state.error.message})` : "it is not open yet";
    throw new OpenFlowError("lost", action, is);
  }

  #find(xid: number): Running | undefined {
    for (const running of this.#running) {
      if (xid >= running.first && xid < running.first + running.count) return running;
    }
    return undefined;
  }

  #finish(exchange: Exchange): void {
    this.#deadlines.delete(exchange);
    for (const running of this.#running) {
      if (running.exchange !== exchange) continue;
      this.#running.delete(running);
      this.#pending -= running.count;
    }
  }
}
