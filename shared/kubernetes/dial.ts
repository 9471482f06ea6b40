import { connect as connectPlain, type Socket } from "node:net";
import { checkServerIdentity, connect as connectSecure, type TLSSocket } from "node:tls";
import { contains, type Ip, parseCidr, parseIp } from "../net/ip.ts";
import type { TlsMaterial } from "./access.ts";

/** The longest answer of a proxy before it lets a connection through. */
const maxProxyAnswerBytes = 16 * 1024;

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

/**
 * The options for `node:tls` and `fetch`. They are all set, so that no environment variable can turn the check of
 * certificates off.
 */
export function tlsOptions(server: URL, { ca, cert, key, serverName, insecure = false }: TlsMaterial) {
  const host = serverName ?? hostOf(server);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    // SNI cannot carry an address; the certificate is still checked for it.
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
    if (text.includes("\r\n\r\n") || text.length > maxProxyAnswerBytes) resolve(text);
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
    // The server sends nothing before our TLS hello, so all that was read is the proxy's.
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

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for a server, by HTTPS_PROXY, HTTP_PROXY and NO_PROXY in either case, as Go's clients read them
 * (golang.org/x/net/http/httpproxy): never for this machine itself.
 * @throws {Error} for one that is no URL of a kind that we speak
 */
export function proxyFor(server: URL, env: Environment, own?: string): URL | undefined {
  const read = (name: string): string => env[name] || env[name.toLowerCase()] || "";
  const said = own ?? (isExempt(server, read("NO_PROXY")) ? "" : read(schemeVariable(server)));
  if (said === "") return undefined;
  const text = said.includes("://") ? said : `http://${said}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The URL may hold a password, so only its scheme is quoted.
  if (url === undefined) throw new Error("the proxy is no URL, wanted http://HOST:PORT");
  if (url.protocol !== "http:") throw new Error(`the proxy is one of ${url.protocol}//, wanted http://HOST:PORT`);
  return url;
}

const schemeVariable = (server: URL): string => (server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY");

function isExempt(server: URL, list: string): boolean {
  const host = hostOf(server);
  const ip = parseIp(host);
  if (host === "localhost" || (ip !== undefined && loopback.some((cidr) => contains(cidr, ip)))) return true;
  const port = server.port || (server.protocol === "https:" ? "443" : "80");
  return list
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== "" && isMeant(entry, host, port, ip));
}

/** `*`, an address, a CIDR, `example.org` with all below it, `.example.org` with those only; any but the CIDR with a port. */
function isMeant(entry: string, host: string, port: string, ip: Ip | undefined): boolean {
  if (entry === "*") return true;
  const cidr = parseCidr(entry);
  if (cidr !== undefined && entry.includes("/")) return ip !== undefined && contains(cidr, ip);
  const [, name = entry, ofPort] =
    /^(?:\[(?=.*\]))?([^\]]*?)\]?(?::(\d+))?$/.exec(parseIp(entry) ? `[${entry}]` : entry) ?? [];
  if (ofPort !== undefined && ofPort !== port) return false;
  if (name.startsWith(".") || name.startsWith("*.")) return host.endsWith(name.replace(/^\*/, ""));
  return host === name || (ip === undefined && host.endsWith(`.${name}`));
}

/** `https://[fd00::1]:6443` has `fd00::1`. */
export const hostOf = (url: URL): string => url.hostname.toLowerCase().replace(/^\[|\]$/g, "");

const loopback = ["127.0.0.0/8", "::1/128"].flatMap((text) => parseCidr(text) ?? []);
