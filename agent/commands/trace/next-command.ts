import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import type { Journey } from "./journey.ts";
import { type Pass, stateAfter } from "./trace-text.ts";
import type { Verdict } from "./verdict.ts";

/** How the packet's way is followed further, on the node where the tunnel leads; `undefined` where it leads nowhere. */
export function nextCommand(
  verdict: Verdict,
  passes: readonly Pass[],
  { isReply, protocol }: Journey,
  nodeAddresses: readonly Ip[],
): string | undefined {
  if (verdict.t !== "tunnel") return undefined;
  const state = stateAfter(passes.at(-1));
  // A service has become an endpoint by now.
  const field = (names: string): string => new RegExp(`,(?:${names})=([^,]+)`).exec(state)?.[1] ?? "";
  const [from, to] = [field("nw_src|ipv6_src"), field("nw_dst|ipv6_dst")];
  const [client, server] = isReply ? [to, from] : [from, to];
  const port = field(isReply ? "tp_src" : "tp_dst");
  const here = nodeAddresses.find(({ family }) => (family === 6) === verdict.node.includes(":"));
  return [
    `pipette trace ${client} ${server}`,
    `--from-tunnel ${here === undefined ? "ADDRESS-OF-THIS-NODE" : formatIp(here)}`,
    ...(verdict.key === 0 ? [] : [`--tunnel-key ${verdict.key}`]),
    ...(protocol.t === "icmp" ? [] : [`--${protocol.t} ${port}`]),
    ...(isReply ? ["--reply"] : []),
  ].join(" ");
}
