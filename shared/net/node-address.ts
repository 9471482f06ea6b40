import { type Cidr, contains, type Ip, overlap, parseCidr, parseIp } from "./ip.ts";

export const nodeAddressRule =
  'an address that other nodes reach this one by, such as "192.168.1.5" or "fd00::5"; none of 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/3, ::, ::1 and ff00::/8';

/** Unspecified, loopback, multicast and reserved blocks: a packet to one of these never reaches another machine. */
const nobodys = ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3", "::/127", "ff00::/8"]
  .map(parseCidr)
  .filter((block) => block !== undefined);

export const isNodeAddress = (ip: Ip): boolean => !nobodys.some((block) => contains(block, ip));

/** Whether an address of the block is one of these; then no node can use the block for pods. */
export const touchesNobodys = (cidr: Cidr): boolean => nobodys.some((block) => overlap(block, cidr));

/** The address that the text is; `undefined` where a node cannot have it. */
export function parseNodeAddress(text: string): Ip | undefined {
  const ip = parseIp(text);
  return ip !== undefined && isNodeAddress(ip) ? ip : undefined;
}
