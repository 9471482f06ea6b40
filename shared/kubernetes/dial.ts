import { connect as connectPlain, type Socket } from "node:net";
import { checkServerIdentity, connect as connectSecure, type TLSSocket } from "node:tls";
import { parseIp } from "../net/ip.ts";
import type { TlsMaterial } from "./access.ts";
import { hostOf } from "./proxy.ts";

/** What a proxy says before it lets a connection through. */
const mostProxyAnswerBytes = 16 * 1024;

/**
 * A TLS connection to the server, its certificate checked; through the proxy where there is one.
 * @throws what the signal was aborted with, or why there is none
 */
export async function dial(
  server: URL,
  tls: TlsMaterial,
  proxy: URL | undefined,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const through = proxy === undefined ? undefined : await tunnel(server, proxy, signal);
  const socket = connectSecure({
    ...(through === undefined ? { host: hostOf(server), port: portOf(server) } : { socket: through }),
    ...tlsOptions(server, tls),
    ALPNProtocols: ["h2", "http/1.1"],
  });
  await ready(socket, "secureConnect", signal);
  return socket;
}

/** What `node:tls` and `fetch` need to know. No variable of the environment can say otherwise: believe any server. */
export function tlsOptions(server: URL, { ca, cert, key, serverName, insecure = false }: TlsMaterial) {
  const host = serverName ?? hostOf(server);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    // An address cannot be asked for by SNI, only be in the certificate.
    ...(parseIp(host) === undefined ? { servername: host } : {}),
    rejectUnauthorized: !insecure,
    checkServerIdentity: (_: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
      insecure ? undefined : checkServerIdentity(host, certificate),
  };
}

async function tunnel(server: URL, proxy: URL, signal: AbortSignal): Promise<Socket> {
  const socket = connectPlain({ host: hostOf(proxy), port: Number(proxy.port || 80) });
  await ready(socket, "connect", signal);
  const target = `${server.hostname}:${portOf(server)}`;
  const { username, password } = proxy;
  const login = btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  const authorization = username === "" ? "" : `Proxy-Authorization: Basic ${login}\r\n`;
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`);
  const answer = await proxyAnswer(socket, signal);
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1];
  if (status === "200") return socket;
  socket.destroy();
  throw new Error(`the proxy ${proxy.host} answers ${status ?? "no HTTP"} to CONNECT ${target}, wanted 200`);
}

async function proxyAnswer(socket: Socket, signal: AbortSignal): Promise<string> {
  let text = "";
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const onData = (chunk: Uint8Array): void => {
    text += new TextDecoder("latin1").decode(chunk);
    if (text.includes("\r\n\r\n") || text.length > mostProxyAnswerBytes) resolve(text);
  };
  const onAbort = (): void => reject(signal.reason);
  const onClose = (): void => reject(new Error("the proxy closed the connection"));
  socket.on("data", onData);
  socket.once("close", onClose);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await promise;
  } catch (caught) {
    socket.destroy();
    throw caught;
  } finally {
    // Nothing comes from the server before our own hello: all of what was read is the proxy's.
    socket.off("data", onData);
    socket.off("close", onClose);
    signal.removeEventListener("abort", onAbort);
  }
}

async function ready(socket: Socket, event: "connect" | "secureConnect", signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => reject(signal.reason);
  const onClose = (): void => reject(new Error("the connection was closed while it was made"));
  socket.once(event, resolve);
  socket.once("error", reject);
  socket.once("close", onClose);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    await promise;
  } catch (caught) {
    // A late error would have no listener.
    socket.on("error", () => undefined);
    socket.destroy();
    throw caught;
  } finally {
    socket.off("error", reject);
    socket.off("close", onClose);
    signal.removeEventListener("abort", onAbort);
  }
}

const portOf = (url: URL): number => Number(url.port || (url.protocol === "https:" ? 443 : 80));
