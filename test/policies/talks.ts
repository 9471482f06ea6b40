import type { Socket } from "bun";
import { eventually } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";

const everyMs = 10;

/** How two pods talk. */
export interface TalkOptions {
  /** Of the client's and the server's namespaces. */
  readonly from: string;
  readonly to: string;
  readonly address: string;
  readonly port: number;
}

/** A connection at both ends of which something is said every moment, whatever the other end says. */
interface Talk extends Disposable {
  /** Messages that have come to either end. */
  readonly heard: { readonly client: number; readonly server: number };
}

/** TCP: what is lost is said again. */
export class TcpTalk implements Talk {
  readonly heard = { client: 0, server: 0 };
  readonly #stack = new DisposableStack();
  #ends: { [end in "client" | "server"]?: Socket } = {};

  private constructor({ from, to, address, port }: TalkOptions) {
    const [client, server] = [from, to].map((path) => this.#stack.use(NetworkNamespace.at(path)));
    const handler = (end: "client" | "server") => ({
      open: (socket: Socket) => {
        this.#ends[end] = socket;
      },
      data: (_: Socket, bytes: Uint8Array) => {
        this.heard[end] += bytes.length;
      },
      error: () => undefined,
    });
    const listener = server?.within(() => Bun.listen({ hostname: "::", port, socket: handler("server") }));
    this.#stack.defer(() => listener?.stop(true));
    client?.within(() => Bun.connect({ hostname: address, port, socket: handler("client") })).catch(() => undefined);
    const timer = setInterval(() => {
      for (const socket of Object.values(this.#ends)) socket.write(".");
    }, everyMs);
    this.#stack.defer(() => clearInterval(timer));
    this.#stack.defer(() => this.#ends.client?.terminate());
  }

  /** @returns once both ends have heard something */
  static async start(options: TalkOptions): Promise<TcpTalk> {
    const talk = new TcpTalk(options);
    await talk.goesOn();
    return talk;
  }

  /** Waits until both ends hear something that is said from now on. */
  async goesOn(): Promise<void> {
    const { client, server } = this.heard;
    await eventually(() => this.heard.client > client && this.heard.server > server, "more from both ends");
  }

  [Symbol.dispose](): void {
    this.#stack.dispose();
  }
}

/** UDP: what is lost stays lost. The server says every datagram back. */
export class UdpTalk implements Talk {
  readonly heard = { client: 0, server: 0 };
  said = 0;
  readonly #stack = new DisposableStack();
  #timer: NodeJS.Timeout | undefined;

  static async start({ from, to, address, port }: TalkOptions): Promise<UdpTalk> {
    const talk = new UdpTalk();
    const [client, server] = [from, to].map((path) => talk.#stack.use(NetworkNamespace.at(path)));
    const hostname = address.includes(":") ? "::" : "0.0.0.0";
    const listening = await server?.within(() =>
      Bun.udpSocket({
        hostname,
        port,
        socket: {
          data: (socket, bytes, peerPort, peer) => {
            talk.heard.server++;
            socket.send(bytes, peerPort, peer);
          },
        },
      }),
    );
    talk.#stack.defer(() => listening?.close());
    const calling = await client?.within(() =>
      Bun.udpSocket({ connect: { hostname: address, port }, socket: { data: () => void talk.heard.client++ } }),
    );
    talk.#stack.defer(() => calling?.close());
    talk.#timer = setInterval(() => {
      if (calling?.send("?") === true) talk.said++;
    }, everyMs);
    await eventually(() => talk.heard.client > 0, "the first answer");
    return talk;
  }

  /** Says no more, and waits for what is under way. @returns how many answers are missing */
  async lost(): Promise<number> {
    clearInterval(this.#timer);
    await eventually(() => this.heard.client >= this.said, "the last answer").catch(() => undefined);
    return this.said - this.heard.client;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#stack.dispose();
  }
}

/** What comes to either end in a time that begins when a change should have had its effect. */
export async function heardAfter(talk: Talk, pauseMs: number, timeMs: number): Promise<number> {
  await Bun.sleep(pauseMs);
  const { client, server } = talk.heard;
  await Bun.sleep(timeMs);
  return talk.heard.client - client + talk.heard.server - server;
}
