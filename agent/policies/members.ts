import { formatIp, type Ip, ipOf } from "../../shared/net/ip.ts";
import type { NamedPort } from "../../shared/policy/mod.ts";
import type { GroupMember } from "../../shared/proto/control-plane-messages.ts";
import { WireError } from "../../shared/proto/wire.ts";

/** A pod of a group, as target or as peer. */
export interface Member {
  /** Of the pod and its addresses: a member with other addresses is another member. */
  readonly key: string;
  /** `namespace/name`. */
  readonly pod: string;
  readonly ips: readonly Ip[];
  readonly ports: readonly NamedPort[];
}

export const podKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name}`;

/** Members that are no pods belong to policies that are refused. @throws {WireError} */
export const readMembers = (messages: readonly GroupMember[]): Member[] =>
  messages.flatMap(({ pod, ips: addresses, ports }) => {
    if (pod === undefined) return [];
    const ips = addresses.map(readIp);
    return [{ key: [podKey(pod), ...ips.map(formatIp)].join(" "), pod: podKey(pod), ips, ports }];
  });

const mappedPrefix = 0xffffn;

/** 4 bytes, or 16 of which the first 12 may say that it is an IPv4 address, as Go has them. @throws {WireError} */
export function readIp(bytes: Uint8Array): Ip {
  if (bytes.length !== 4 && bytes.length !== 16)
    throw new WireError(`Cannot read an address: it has ${bytes.length} bytes, wanted 4 or 16`);
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  if (bytes.length === 4) return ipOf(4, value);
  return value >> 32n === mappedPrefix ? ipOf(4, value & 0xffff_ffffn) : ipOf(6, value);
}
