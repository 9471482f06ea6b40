import type { Socket, TCPSocketListener } from "bun";
import type { NetworkNamespace } from "../../support/network-namespace.ts";
import type { Place } from "./reach.ts";

/** What a caller sends: more than fits into one segment, so that its size and its checksums count. */
const sentBytes = 64 * 1024;
export const tcpPort = 7070;

/** Listens in a namespace on every address, and tells each caller, once it has said its piece, who it seems to be. */
export class TcpServer implements Disposable {
  readonly #listener: TCPSocketListener<{ heard: number }>;

  constructor(namespace: NetworkNamespace) {
    this.#listener = namespace.within(() =>
      Bun.listen<{ heard: number }>({
        hostname: "::",
        port: tcpPort,
        socket: {
          open: (socket) => {
            socket.data = { heard: 0 };
          },
          data: (socket, bytes) => {
            socket.data.heard += bytes.length;
            if (socket.data.heard === sentBytes) socket.end(socket.remoteAddress.replace("::ffff:", ""));
          },
          error: () => undefined,
        },
      }),
    );
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
  }
}

/**
 * Says its piece to a `TcpServer`.
 * @returns the address under which the server saw it; `undefined` where it did not come to that in time
 */
export async function seenBy(
  namespace: NetworkNamespace,
  address: string,
  { port = tcpPort, patienceMs = 5_000 } = {},
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let text = "";
  let left = sentBytes;
  let open: Socket | undefined;
  const send = (socket: Socket): void => {
    if (left > 0) left -= socket.write(new Uint8Array(left));
  };
  const timer = setTimeout(() => resolve(undefined), patienceMs);
  const connecting = namespace.within(() =>
    Bun.connect({
      hostname: address,
      port,
      socket: {
        open: (socket) => {
          open = socket;
          send(socket);
        },
        drain: send,
        data: (_, bytes) => {
          text += new TextDecoder().decode(bytes);
        },
        close: () => resolve(text === "" ? undefined : text),
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
    open?.terminate();
  }
}

/**
 * Connects every place to every address of every other, each of which listens.
 * @returns a line for each pair that did not talk, or whose caller was not seen under an address that it may have there
 */
export async function failedConnections(
  places: readonly Place[],
  targets: readonly Place[] = places,
): Promise<string[]> {
  using servers = new DisposableStack();
  for (const place of targets) servers.use(new TcpServer(place.namespace));
  const lines: string[] = [];
  for (const from of places) {
    const calls = targets
      .filter((to) => to !== from)
      .flatMap((to) =>
        to.addresses.map(async (address) => {
          const seen = await seenBy(from.namespace, address);
          if (seen === undefined || !(from.seenAs?.(address) ?? from.addresses).includes(seen))
            lines.push(
              `${from.name} -> ${to.name} (${address}): ${seen === undefined ? "no answer" : `seen as ${seen}`}`,
            );
        }),
      );
    await Promise.all(calls);
  }
  return lines.sort();
}
