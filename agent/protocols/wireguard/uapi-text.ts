import { formatCidr, formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import type { DeviceChange, DeviceState, Endpoint, PeerChange, PeerState } from "./device.ts";
import { publicKeyOf } from "./keys.ts";

/** The text of the control socket of a device in user space (wireguard.com/xplatform): `key=value`, a line each. */

export const getRequest = "get=1\n\n";

const hexOf = (base64: string): string => Buffer.from(base64, "base64").toString("hex");
const base64Of = (hex: string): string => Buffer.from(hex, "hex").toString("base64");

export function setRequest({ privateKey, listenPort, peers = [] }: DeviceChange): string {
  return [
    "set=1",
    ...(privateKey === undefined ? [] : [`private_key=${Buffer.from(privateKey).toString("hex")}`]),
    ...(listenPort === undefined ? [] : [`listen_port=${listenPort}`]),
    ...peers.flatMap(peerLines),
    "",
    "",
  ].join("\n");
}

function peerLines({ publicKey, remove, endpoint, allowed, keepaliveSeconds }: PeerChange): readonly string[] {
  const key = `public_key=${hexOf(publicKey)}`;
  if (remove) return [key, "remove=true"];
  return [
    key,
    ...(endpoint === undefined ? [] : [`endpoint=${endpointText(endpoint)}`]),
    ...(allowed === undefined
      ? []
      : ["replace_allowed_ips=true", ...allowed.map((one) => `allowed_ip=${formatCidr(one)}`)]),
    // Last, because it makes the device send at once.
    ...(keepaliveSeconds === undefined ? [] : [`persistent_keepalive_interval=${keepaliveSeconds}`]),
  ];
}

const endpointText = ({ ip, port }: Endpoint): string =>
  ip.family === 4 ? `${formatIp(ip)}:${port}` : `[${formatIp(ip)}]:${port}`;

function readEndpoint(text: string): Endpoint | undefined {
  const at = text.lastIndexOf(":");
  const ip = parseIp(text.slice(0, at).replace(/^\[|\]$/g, ""));
  const port = Number(text.slice(at + 1));
  return ip === undefined || !Number.isInteger(port) || port < 0 || port > 65_535 ? undefined : { ip, port };
}

/** The answer to any request: what it says, and the number of the error, 0 for none. @throws {Error} for what is none */
export function readAnswer(text: string): {
  readonly errno: number;
  readonly lines: readonly (readonly [string, string])[];
} {
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const at = line.indexOf("=");
      if (at < 1) throw new Error(`a line without "=", of ${line.length} characters`);
      return [line.slice(0, at), line.slice(at + 1)] as const;
    });
  const errno = Number(lines.at(-1)?.[1]);
  if (lines.at(-1)?.[0] !== "errno" || !Number.isInteger(errno)) throw new Error('no "errno" at its end');
  return { errno, lines: lines.slice(0, -1) };
}

/** What a device has. Its private key is not kept. @throws {Error} for values that are none */
export function readDevice(lines: readonly (readonly [string, string])[]): DeviceState {
  let publicKey: string | undefined;
  let listenPort = 0;
  const peers: Mutable<PeerState>[] = [];
  for (const [key, value] of lines) {
    const peer = peers.at(-1);
    if (key === "public_key") peers.push({ publicKey: base64Of(hex(value)), allowed: [], ...nothingYet });
    else if (key === "private_key")
      publicKey = /^0*$/.test(hex(value)) ? undefined : publicKeyOf(Buffer.from(value, "hex"));
    else if (key === "listen_port") listenPort = number(value);
    else if (peer !== undefined) readPeerLine(peer, key, value);
  }
  return { ...(publicKey === undefined ? {} : { publicKey }), listenPort, peers };
}

const nothingYet = { keepaliveSeconds: 0, handshakeAt: 0, receivedBytes: 0, sentBytes: 0 };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function readPeerLine(peer: Mutable<PeerState>, key: string, value: string): void {
  const cidr = key === "allowed_ip" ? parseCidr(value) : undefined;
  const endpoint = key === "endpoint" ? readEndpoint(value) : undefined;
  if (cidr !== undefined) peer.allowed = [...peer.allowed, cidr];
  if (endpoint !== undefined) peer.endpoint = endpoint;
  if (key === "persistent_keepalive_interval") peer.keepaliveSeconds = number(value);
  if (key === "last_handshake_time_sec") peer.handshakeAt = number(value);
  if (key === "rx_bytes") peer.receivedBytes = number(value);
  if (key === "tx_bytes") peer.sentBytes = number(value);
}

function hex(value: string): string {
  if (/^[0-9a-f]{64}$/.test(value)) return value;
  throw new Error(`a key of ${value.length} characters, wanted 64 of hexadecimal`);
}

function number(value: string): number {
  if (/^\d{1,16}$/.test(value)) return Number(value);
  throw new Error(`"${value.slice(0, 20)}" where a number is wanted`);
}
