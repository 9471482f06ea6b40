import { connect } from "node:net";

/**
 * The status of `GET path` on a port of 127.0.0.1, from this thread's network namespace, in which `fetch` is not: it has a
 * thread of its own. 0 where nobody answers.
 */
export function loopbackGet(port: number, path: string): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve } = Promise.withResolvers<{ status: number; text: string }>();
  let text = "";
  const socket = connect({ host: "127.0.0.1", port }, () => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  });
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  socket.on("error", () => resolve({ status: 0, text }));
  socket.on("close", () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text }));
  return promise;
}
