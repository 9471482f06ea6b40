import type { Socket } from "bun";
import type { NetworkNamespace } from "../../support/network-namespace.ts";

const port = 7272;
const chunk = new Uint8Array(64 * 1024);

/** One connection from namespace to namespace; ends with `work`. */
async function connected<T>(
  [from, to, address]: readonly [NetworkNamespace, NetworkNamespace, string],
  heard: (socket: Socket, bytes: Uint8Array) => void,
  answered: (bytes: Uint8Array) => void,
  drained: () => void,
  work: (socket: Socket) => Promise<T>,
): Promise<T> {
  const listener = to.within(() =>
    Bun.listen({
      hostname: "::",
      port,
      socket: { data: (socket, bytes) => heard(socket, bytes), error: () => undefined },
    }),
  );
  const socket = await from.within(() =>
    Bun.connect({
      hostname: address,
      port,
      socket: { data: (_, bytes) => answered(bytes), drain: () => drained(), error: () => undefined },
    }),
  );
  try {
    return await work(socket);
  } finally {
    socket.terminate();
    listener.stop(true);
  }
}

/** Sends so many bytes, and answers how many milliseconds it takes until all have come. */
export async function transfer(
  from: NetworkNamespace,
  to: NetworkNamespace,
  address: string,
  bytes: number,
): Promise<number> {
  const done = Promise.withResolvers<void>();
  let [left, come] = [bytes, 0];
  let send = (): void => undefined;
  return connected(
    [from, to, address],
    (_, part) => {
      come += part.length;
      if (come >= bytes) done.resolve();
    },
    () => undefined,
    () => send(),
    async (socket) => {
      send = () => {
        while (left > 0) {
          const sent = socket.write(chunk.subarray(0, Math.min(left, chunk.length)));
          if (sent <= 0) return;
          left -= sent;
        }
      };
      const begun = performance.now();
      send();
      await done.promise;
      return performance.now() - begun;
    },
  );
}

/** Asks so many times for one byte, each time once the last answer has come; answers the milliseconds of all. */
export async function askManyTimes(
  from: NetworkNamespace,
  to: NetworkNamespace,
  address: string,
  times: number,
): Promise<number> {
  const done = Promise.withResolvers<void>();
  let left = times;
  let ask = (): void => undefined;
  return connected(
    [from, to, address],
    (socket, bytes) => void socket.write(bytes),
    () => (--left > 0 ? ask() : done.resolve()),
    () => undefined,
    async (socket) => {
      ask = () => void socket.write("?");
      const begun = performance.now();
      ask();
      await done.promise;
      return performance.now() - begun;
    },
  );
}
