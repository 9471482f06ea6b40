import {
  Attributes,
  fixedHeader,
  type RawMessage,
  readMessages,
} from "../../../agent/protocols/netlink/message-reader.ts";
import { type Message, MessageWriter } from "../../../agent/protocols/netlink/message-writer.ts";
import { NetlinkError } from "../../../agent/protocols/netlink/netlink-error.ts";

/** What a kernel in memory answers in place of doing what it is asked for. */
export class Refusal extends Error {
  readonly errno: number;
  constructor(errno: number) {
    super(`errno ${errno}`);
    this.errno = errno;
  }
}

const room = new Uint8Array(64 * 1024);

/** A message as the kernel gets or sends it. */
export function framed(type: number, body: (writer: MessageWriter) => void, flags = 0): RawMessage {
  const writer = new MessageWriter(room);
  writer.message(type, flags, 1, body);
  const [message] = readMessages(room.slice(0, writer.length));
  if (message === undefined) throw new Error("Broken invariant: nothing was written");
  return message;
}

/** The fixed header and the attributes of a request. */
export function opened(message: RawMessage, headerBytes: number): { readonly view: DataView; readonly of: Attributes } {
  const { view, rest } = fixedHeader(message.body, headerBytes);
  return { view, of: new Attributes(rest) };
}

/**
 * What NetlinkSocket is to those who use it, above a kernel in memory. Every request goes through the bytes that the real
 * one would get.
 */
export abstract class SocketInMemory implements Disposable {
  /** Runs before every request has an effect; what it throws is the kernel's refusal. */
  before: (action: string) => void = () => undefined;

  /** Carries one request out. @throws {Refusal} */
  protected abstract apply(request: RawMessage): void;
  /** What is asked for. @throws {Refusal} */
  protected abstract answer(request: RawMessage, isDump: boolean): readonly RawMessage[];

  batch(messages: readonly Message[]): readonly (NetlinkError | undefined)[] {
    return messages.map((message) => {
      try {
        this.#asked(message, (request) => this.apply(request));
        return undefined;
      } catch (caught) {
        if (!(caught instanceof NetlinkError)) throw caught;
        return caught.errno === message.harmless ? undefined : caught;
      }
    });
  }

  run(message: Message): void {
    this.#asked(message, (request) => this.apply(request));
  }

  async post(message: Message): Promise<void> {
    this.run(message);
  }

  get<T>(message: Message, read: (answer: RawMessage) => T): T {
    return this.#asked(message, (request) => {
      const [found] = this.answer(request, false);
      if (found === undefined) throw new Error(`Broken invariant: no answer to "${message.action}"`);
      return read(found);
    });
  }

  dump<T>(message: Message, read: (answer: RawMessage) => T | undefined): T[] {
    return this.#asked(message, (request) =>
      this.answer(request, true).flatMap((one) => {
        const object = read(one);
        return object === undefined ? [] : [object];
      }),
    );
  }

  [Symbol.dispose](): void {}

  #asked<T>(message: Message, work: (request: RawMessage) => T): T {
    try {
      this.before(message.action());
      return work(framed(message.type, message.body, message.flags));
    } catch (caught) {
      if (caught instanceof Refusal) throw new NetlinkError(message.action(), caught.errno);
      throw caught;
    }
  }
}
