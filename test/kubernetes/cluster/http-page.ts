import type { NetworkNamespace } from "../../support/network-namespace.ts";

/**
 * The body of a page, asked for in a network namespace by a connection of its own.
 * @throws where none comes within five seconds
 */
export async function httpPage(
  namespace: NetworkNamespace,
  hostname: string,
  port: number,
  path = "/hostname",
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const fail = (reason: string): void =>
    reject(new Error(`Cannot get "${path}" of "${hostname}" port ${port}: ${reason}`));
  const timer = setTimeout(() => fail(`not done after five seconds, heard "${text}"`), 5_000);
  let text = "";
  const failed = (_: unknown, error: Error): void => fail(error.message);
  const connecting = namespace.within(() =>
    Bun.connect({
      hostname,
      port,
      socket: {
        open: (socket) => void socket.write(`GET ${path} HTTP/1.0\r\nHost: pod\r\n\r\n`),
        data: (_, bytes) => {
          text += new TextDecoder().decode(bytes);
        },
        close: () => {
          if (text.startsWith("HTTP/1.0 200")) resolve(text.slice(text.indexOf("\r\n\r\n") + 4));
          else fail(`the answer is "${text}"`);
        },
        error: failed,
        connectError: failed,
      },
    }),
  );
  connecting.catch((error: Error) => fail(error.message));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
