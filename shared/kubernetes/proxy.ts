import { contains, type Ip, parseCidr, parseIp } from "../net/ip.ts";

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
  // What it holds may be a password: only its scheme is said.
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
