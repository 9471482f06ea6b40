import type { NetworkNamespace } from "../../support/network-namespace.ts";

/**
 * The body of a page, asked for in a network namespace by a connection of its own.
 * @returns `undefined` where none comes within five seconds
 */
export async function httpPage(
  namespace: NetworkNamespace,
  hostname: string,
  port: number,
  path = "/hostname",
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const timer = setTimeout(() => resolve(undefined), 5_000);
  let text = "";
  const failed = (): void => resolve(undefined);
  const connecting = namespace.within(() =>
    Bun.connect({
      hostname,
      port,
      socket: {
        open: (socket) => void socket.write(`GET ${path} HTTP/1.0\r\nHost: pod\r\n\r\n`),
        data: (_, bytes) => {
          text += new TextDecoder().decode(bytes);
        },
        close: () => resolve(text.startsWith("HTTP/1.0 200") ? text.slice(text.indexOf("\r\n\r\n") + 4) : undefined),
        error: failed,
        connectError: failed,
      },
    }),
  );
  connecting.catch(failed);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
