import { parseIp } from "../../shared/net/ip.ts";
import { type ListenAddress, listenRule, parseListen } from "../../shared/net/listen-address.ts";
import {
  boolean,
  defaulted,
  type Findings,
  type Infer,
  object,
  optional,
  required,
  text,
} from "../../shared/schema/mod.ts";
import { path, url } from "./values.ts";

const listen = text(`${listenRule} with an IP address`, (given): ListenAddress | undefined => {
  const place = parseListen(given);
  return place !== undefined && place.port > 0 && parseIp(place.host) !== undefined ? place : undefined;
});

/** `metrics` of `agent.yaml`. */
export const metricsSchema = object({
  listen: required(
    listen,
    "where `/metrics` is answered, and to operators `/v1/documents/…` (HTTPS only): `127.0.0.1:10352`, `[::]:10352`",
  ),
  plain: defaulted(
    boolean,
    false,
    "HTTP for everybody who can connect, on a loopback address; otherwise HTTPS, for whom the API server lets get `/metrics`",
  ),
  certificates: optional(
    path,
    "a directory with `tls.crt`, `tls.key` and `ca.crt`, followed while the agent runs",
    "one that the agent makes for itself, which Prometheus cannot check",
  ),
  server: optional(
    url('"https://HOST:PORT"', ["https:", "http:"]),
    "the API server, which is asked who asks and what they may",
    "what a pod finds",
  ),
  token: optional(path, "a file with the token for that", "as `server`"),
  ca: optional(path, "the authorities that the server's certificate is checked with (PEM)", "as `server`"),
});

export type MetricsConfig = Infer<typeof metricsSchema>;

/** Finds contradictions between keys. */
export function checkMetrics({ listen: { host }, plain, certificates }: MetricsConfig, findings: Findings): void {
  const at = ["metrics"];
  if (!plain) return;
  if (!isLoopback(host)) findings.add([...at, "plain"], `true at "${host}", wanted a loopback address, or HTTPS`);
  if (certificates !== undefined) findings.add([...at, "certificates"], 'there beside "plain", wanted one of both');
}

function isLoopback(host: string): boolean {
  const ip = parseIp(host);
  return ip !== undefined && (ip.family === 4 ? ip.value >> 24n === 127n : ip.value === 1n);
}
