import type { Socket, SocketHandler, TCPSocketListener } from "bun";
import { eventually } from "../../support/agent-process.ts";
import type { NetworkNamespace } from "../../support/network-namespace.ts";

const everyMs = 20;
const usualPort = 7171;

/** One TCP connection that stays open: one end says a number every moment, the other says it again. */
export class Conversation implements Disposable {
  /** The longest time between two answers so far. */
  longestSilenceMs = 0;
  /** How it ended, if it did. */
  ended: string | undefined;
  #said = 0;
  /** What the socket has not taken yet: after a long silence its buffer is full. */
  #unsent = "";
  #answered = 0;
  #heardAt = performance.now();
  #unread = "";
  #socket: Socket | undefined;
  readonly #listener: TCPSocketListener<undefined>;
  readonly #timer: NodeJS.Timeout;

  private constructor(from: NetworkNamespace, to: NetworkNamespace, address: string, port: number) {
    this.#listener = to.within(() => Bun.listen({ hostname: "::", port, socket: echo() }));
    const calling = from.within(() =>
      Bun.connect({
        hostname: address,
        port,
        socket: {
          open: (socket) => {
            this.#socket = socket;
          },
          data: (_, bytes) => this.#hear(new TextDecoder().decode(bytes)),
          close: () => {
            this.ended ??= "it was closed";
          },
          error: (_, error) => {
            this.ended ??= error.message;
          },
        },
      }),
    );
    calling.catch((error: Error) => {
      this.ended ??= error.message;
    });
    this.#timer = setInterval(() => this.#say(), everyMs);
  }

  /** @returns once the first answer has come */
  static async start(
    from: NetworkNamespace,
    to: NetworkNamespace,
    address: string,
    port = usualPort,
  ): Promise<Conversation> {
    const conversation = new Conversation(from, to, address, port);
    try {
      await conversation.goesOn();
      return conversation;
    } catch (caught) {
      conversation[Symbol.dispose]();
      throw caught;
    }
  }

  /** How many answers have come. */
  get answered(): number {
    return this.#answered;
  }

  /** Waits for the answer to something that is said from now on. */
  async goesOn(): Promise<void> {
    const said = this.#said;
    await eventually(() => {
      if (this.ended !== undefined) throw new Error(`The conversation has ended: ${this.ended}`);
      return this.#answered > said;
    }, "the other end of the conversation");
  }

  [Symbol.dispose](): void {
    this.ended ??= "it was disposed";
    clearInterval(this.#timer);
    this.#socket?.terminate();
    this.#listener.stop(true);
  }

  #say(): void {
    if (this.#socket === undefined) return;
    this.#unsent += `${++this.#said}\n`;
    this.#unsent = this.#unsent.slice(Math.max(0, this.#socket.write(this.#unsent)));
  }

  #hear(text: string): void {
    const lines = (this.#unread + text).split("\n");
    this.#unread = lines.pop() ?? "";
    if (lines.length === 0) return;
    const last = Number(lines.at(-1));
    if (last !== this.#answered + lines.length) this.ended = `answer ${last} came after ${this.#answered}`;
    this.#answered = last;
    const now = performance.now();
    this.longestSilenceMs = Math.max(this.longestSilenceMs, now - this.#heardAt);
    this.#heardAt = now;
  }
}

/** Says everything again, as much at a time as the socket takes. */
function echo(): SocketHandler<undefined> {
  let unsent = Buffer.alloc(0);
  const send = (socket: Socket<undefined>): void => {
    unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
  };
  return {
    data: (socket, bytes) => {
      unsent = Buffer.concat([unsent, bytes]);
      send(socket);
    },
    drain: send,
  };
}
