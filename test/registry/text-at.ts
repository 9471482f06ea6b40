/**
 * What a server answers to a GET, head and all; empty where it does not answer within a second. `fetch` asks from a
 * thread of its own, that is from a network namespace of its own.
 */
export function textAt(url: string, within: <T>(work: () => T) => T = (work) => work()): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = "";
  const end = (): void => {
    clearTimeout(timer);
    resolve(text);
  };
  const timer = setTimeout(end, 1_000);
  within(() =>
    Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: (socket) => void socket.write(`GET ${pathname} HTTP/1.0\r\nHost: ${hostname}\r\n\r\n`),
        data: (_, bytes) => {
          text += new TextDecoder().decode(bytes);
        },
        close: end,
        error: end,
        connectError: end,
      },
    }),
  ).catch(end);
  return promise;
}
