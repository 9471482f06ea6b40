import type { NetworkNamespace } from "../support/network-namespace.ts";

/** What a client came to: who answered, and whom that saw. */
export interface Answer {
  readonly name: string;
  readonly seenAs: string;
}

const withoutMapping = (address: string): string => address.replace("::ffff:", "");

/**
 * Tells each caller its name and whom it sees, in a line, over TCP and UDP, on every address of a namespace. The caller
 * ends the connection: whoever ends it remembers it for a minute (TIME_WAIT), and an endpoint that did would meet a
 * client's next connection from the same port through another service with an ACK to the old one. Open vSwitch's own
 * connection tracking forgets after half of that minute, takes the ACK for invalid, and the client waits for ever.
 */
export class NamedServer implements Disposable {
  readonly #stop: (() => void)[] = [];

  static async start(namespace: NetworkNamespace, name: string, port: number): Promise<NamedServer> {
    const server = new NamedServer();
    const tcp = namespace.within(() =>
      Bun.listen({
        hostname: "::",
        port,
        socket: {
          open: (socket) => void socket.write(`${name} ${withoutMapping(socket.remoteAddress)}\n`),
          data: () => undefined,
          error: () => undefined,
        },
      }),
    );
    server.#stop.push(() => tcp.stop(true));
    const udp = await namespace.within(() =>
      Bun.udpSocket({
        hostname: "::",
        port,
        socket: {
          data: (socket, _, from, address) => void socket.send(`${name} ${withoutMapping(address)}`, from, address),
          // Whoever asked may have gone by then.
          error: () => undefined,
        },
      }),
    );
    server.#stop.push(() => udp.close());
    return server;
  }

  [Symbol.dispose](): void {
    for (const stop of this.#stop.splice(0)) stop();
  }
}

function answerOf(text: string): Answer {
  const [name = "", seenAs = ""] = text.split(" ");
  return { name, seenAs };
}

/** One TCP connection. `undefined` where none answers in time, or refuses. */
export async function call(
  namespace: NetworkNamespace,
  address: string,
  port: number,
  patienceMs = 5_000,
): Promise<Answer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
  let text = "";
  const timer = setTimeout(() => resolve(undefined), patienceMs);
  const connecting = namespace.within(() =>
    Bun.connect({
      hostname: address,
      port,
      socket: {
        data: (_, bytes) => {
          text += new TextDecoder().decode(bytes);
          if (text.endsWith("\n")) resolve(answerOf(text.trimEnd()));
        },
        close: () => resolve(undefined),
        error: () => resolve(undefined),
        connectError: () => resolve(undefined),
      },
    }),
  );
  connecting.catch(() => resolve(undefined));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    void connecting.then((socket) => socket.terminate()).catch(() => undefined);
  }
}

/** Who answered each of so many calls, and how often; "nobody" where none did. */
export async function tally(count: number, ask: () => Promise<Answer | undefined>): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const name = (await ask())?.name ?? "nobody";
    found[name] = (found[name] ?? 0) + 1;
  }
  return found;
}

/** Sends datagrams from one port, as a client of DNS that keeps its socket. */
export class DatagramClient implements Disposable {
  readonly #socket: Bun.udp.Socket<"buffer">;
  #heard: ((answer: Answer) => void) | undefined;

  private constructor(make: (heard: (text: string) => void) => Bun.udp.Socket<"buffer">) {
    this.#socket = make((text) => this.#heard?.(answerOf(text)));
  }

  /** @param port absent: any */
  static async open(namespace: NetworkNamespace, family: 4 | 6, port = 0): Promise<DatagramClient> {
    let heard = (_: string): void => undefined;
    const socket = await namespace.within(() =>
      Bun.udpSocket({
        hostname: family === 4 ? "0.0.0.0" : "::",
        port,
        // Refusals come as errors.
        socket: { data: (_, bytes) => heard(new TextDecoder().decode(bytes)), error: () => undefined },
      }),
    );
    return new DatagramClient((on) => {
      heard = on;
      return socket;
    });
  }

  async ask(address: string, port: number, patienceMs = 2_000): Promise<Answer | undefined> {
    const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
    this.#heard = resolve;
    const timer = setTimeout(() => resolve(undefined), patienceMs);
    try {
      this.#socket.send("?", port, address);
      return await promise;
    } catch {
      // The node's own kernel refuses what is not sent yet.
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}
