import type { Exchange } from "../../../shared/https/mod.ts";
import { type Cidr, contains, type Ip, parseIp } from "../../../shared/net/ip.ts";

/**
 * Where a request comes from. What proxies say of that counts as far as they are known: each adds whom it has heard it
 * from, so that the last who is no proxy of ours is the one.
 * @param proxies whose `x-forwarded-for` is believed
 */
export function clientAddress(exchange: Exchange, proxies: readonly Cidr[]): Ip | undefined {
  let from = parseIp(exchange.socket.remoteAddress ?? "");
  const said = (exchange.header("x-forwarded-for") ?? "").split(",").map((text) => text.trim());
  while (from !== undefined && proxies.some((proxy) => contains(proxy, from as Ip))) {
    const before = parseIp(said.pop() ?? "");
    if (before === undefined) break;
    from = before;
  }
  return from;
}
