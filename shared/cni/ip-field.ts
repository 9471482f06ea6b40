import { type Ip, parseIp } from "../net/ip.ts";
import type { Fields } from "../schema/json-fields.ts";

/** An address that may be left out or empty, as host-local's keys may. @throws {CniError} code 7 */
export function optionalIp(fields: Fields, key: string): Ip | undefined {
  const text = fields.string(key);
  if (text === undefined || text === "") return undefined;
  const ip = parseIp(text);
  if (ip === undefined) throw fields.wrong(key, text, "an IPv4 or IPv6 address");
  return ip;
}
