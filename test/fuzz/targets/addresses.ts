import IPCIDR from "ip-cidr";
import {
  bitsOf,
  firstOf,
  formatCidr,
  formatIp,
  lastOf,
  overlap,
  parseCidr,
  parseIp,
  sameIp,
} from "../../../shared/net/ip.ts";
import { formatMac, parseMac } from "../../../shared/net/mac.ts";
import type { Target } from "../engine/target.ts";
import { textOf } from "./words.ts";

/**
 * What we read of an address against `ip-cidr`. Ours is the stricter one (no zones, no leading zeros, no hexadecimal
 * IPv4 octets), so whatever we take it has to take, as the same block.
 */
function compare(text: string): void {
  const ip = parseIp(text);
  if (ip !== undefined && !sameIp(parseIp(formatIp(ip)) ?? ip, ip))
    throw new Error("An address is read as another after it was written");
  const cidr = parseCidr(text);
  if (cidr === undefined) return;
  const again = parseCidr(formatCidr(cidr));
  if (again === undefined || !sameIp(again.ip, cidr.ip) || again.prefix !== cidr.prefix)
    throw new Error("A block is read as another after it was written");
  if (cidr.prefix > bitsOf(cidr.ip.family)) throw new Error(`A prefix of ${cidr.prefix} was taken`);
  if (!overlap(cidr, cidr)) throw new Error("A block does not overlap itself");
  const plain = formatCidr(cidr);
  if (!IPCIDR.isValidCIDR(plain)) throw new Error(`ip-cidr does not take ${plain}`);
  const theirs = new IPCIDR(plain);
  const [first, last] = [formatIp(firstOf(cidr)), formatIp(lastOf(cidr))];
  const same = (ours: string, other: string): boolean => sameIp(parseIp(ours) ?? cidr.ip, parseIp(other) ?? cidr.ip);
  if (!same(first, theirs.start().toString()) || !same(last, theirs.end().toString()))
    throw new Error(`${plain} goes from ${first} to ${last}, and by ip-cidr from ${theirs.start()} to ${theirs.end()}`);
}

export const addresses: Target = {
  name: "addresses",
  what: "addresses, blocks and hardware addresses as text, against ip-cidr",
  mutators: [],
  dictionary: [
    "::",
    "ffff:",
    ":",
    ".",
    "/",
    "0",
    "255",
    "/128",
    "/32",
    "1.2.3.4",
    "%eth0",
    "fe80::1",
    "::ffff:1.2.3.4",
  ],
  maxBytes: 64,
  open: () => ({
    run: (input) => {
      const text = textOf(input);
      compare(text);
      const mac = parseMac(text);
      if (mac !== undefined && formatMac(parseMac(formatMac(mac)) ?? mac) !== formatMac(mac))
        throw new Error("A hardware address changes");
    },
  }),
};
