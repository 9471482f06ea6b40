import { withTimeout } from "../../../shared/async/with-timeout.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { DeviceChange, DeviceState, WireGuardDevice } from "./device.ts";
import { getRequest, readAnswer, readDevice, setRequest } from "./uapi-text.ts";

/** How long an answer may take: the daemon does little, on a node that may be busy. */
const answerMs = 10_000;
/** Ten thousand peers with their blocks are 4 MiB. */
const maxAnswerBytes = 16 * 1024 * 1024;

/** A device whose packets a daemon handles, which listens at a socket. The connection stays: its end tells the daemon's. */
export class UserspaceDevice implements WireGuardDevice {
  readonly #path: string;
  readonly #onEnd: () => void;
  #socket: Bun.Socket | undefined;
  #received: Uint8Array[] = [];
  #receivedBytes = 0;
  #waiting: PromiseWithResolvers<string> | undefined;
  #unsent: Uint8Array = new Uint8Array(0);
  /** One request after another: answers have no number. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(path: string, onEnd: () => void) {
    this.#path = path;
    this.#onEnd = onEnd;
  }

  /** @param onEnd called once when the daemon is gone @throws {CniError} 11 where nobody listens */
  static async connect(path: string, onEnd: () => void): Promise<UserspaceDevice> {
    const device = new UserspaceDevice(path, onEnd);
    try {
      device.#socket = await Bun.connect({
        unix: path,
        socket: {
          data: (_, bytes) => device.#take(bytes),
          drain: () => device.#write(),
          close: () => device.#ended("it was closed"),
          error: (_, error) => device.#ended(reasonOf(error)),
        },
      });
    } catch (caught) {
      throw device.#away(reasonOf(caught));
    }
    return device;
  }

  async read(): Promise<DeviceState> {
    const text = await this.#ask(getRequest);
    return readDevice(this.#answer(text));
  }

  async change(change: DeviceChange): Promise<void> {
    this.#answer(await this.#ask(setRequest(change)));
  }

  [Symbol.dispose](): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#waiting?.reject(this.#away("it was disposed of"));
    socket?.terminate();
  }

  #answer(text: string): readonly (readonly [string, string])[] {
    try {
      const { errno, lines } = readAnswer(text);
      if (errno === 0) return lines;
      throw new Error(`its error number is ${errno}`);
    } catch (caught) {
      const is = `the daemon at "${this.#path}" answers ${reasonOf(caught)}`;
      throw new CniError(CniCode.interfaceFailure, `Cannot set up WireGuard: ${is}`, { cause: caught });
    }
  }

  #ask(request: string): Promise<string> {
    const asked = this.#last.then(() => this.#askNow(request));
    this.#last = asked.catch(() => undefined);
    return asked;
  }

  async #askNow(request: string): Promise<string> {
    if (this.#socket === undefined) throw this.#away("it is gone");
    this.#received = [];
    this.#receivedBytes = 0;
    const waiting = Promise.withResolvers<string>();
    this.#waiting = waiting;
    this.#unsent = new TextEncoder().encode(request);
    this.#write();
    const late = this.#away(`it has not answered for ${answerMs} ms`);
    try {
      return await withTimeout(waiting.promise, answerMs, () => {
        // A later answer would be taken for the next one's.
        this.#ended(late.message);
        throw late;
      });
    } finally {
      this.#waiting = undefined;
    }
  }

  #write(): void {
    if (this.#socket === undefined || this.#unsent.length === 0) return;
    const sent = this.#socket.write(this.#unsent);
    this.#unsent = this.#unsent.subarray(Math.max(0, sent));
  }

  /** An answer ends with an empty line. */
  #take(bytes: Uint8Array): void {
    this.#received.push(Uint8Array.from(bytes));
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes > maxAnswerBytes) {
      this.#ended(`it has said more than ${maxAnswerBytes} bytes`);
      return;
    }
    const last = this.#received.length === 1 ? bytes : Buffer.concat(this.#received.slice(-2));
    if (last.at(-1) !== newline || last.at(-2) !== newline) return;
    this.#waiting?.resolve(Buffer.concat(this.#received).toString("latin1"));
  }

  #ended(why: string): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    this.#socket = undefined;
    this.#waiting?.reject(this.#away(why));
    socket.terminate();
    this.#onEnd();
  }

  #away(why: string): CniError {
    return new CniError(
      CniCode.tryAgainLater,
      `Cannot set up WireGuard: the daemon at "${this.#path}" cannot be reached (${why})`,
    );
  }
}

const newline = 0x0a;
