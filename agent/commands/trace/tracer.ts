import type { Control } from "../../protocols/switch-control/mod.ts";
import { type Packet, packetText, trackingStates } from "./packet.ts";
import { type Pass, parseTrace, tunnelKey } from "./trace-text.ts";

/** Open vSwitch's trace of a packet. */
export interface Trace {
  readonly passes: readonly Pass[];
  /** The complete text. */
  readonly text: string;
}

const action = "trace the packet";
const asNode = "Not tunneling to our own address";
const isMiss = /neighbor cache miss/;
/** How long to wait for a node on the link to answer ARP. */
const neighbourMs = 200;

/**
 * Asks ovs-vswitchd for the packet's path. If it does not know the MAC of a tunnel's other end it sends ARP, as for a
 * real packet, so the trace is repeated once.
 * @throws {CniError} as `Control.ask`
 */
export async function trace(control: Control, bridge: string, packet: Packet): Promise<Trace> {
  const first = await traceOnce(control, bridge, packet);
  if (!isMiss.test(first.text)) return first;
  await Bun.sleep(neighbourMs);
  return traceOnce(control, bridge, packet);
}

async function traceOnce(control: Control, bridge: string, packet: Packet): Promise<Trace> {
  const args = ["--names", bridge, packetText(packet), ...trackingStates(packet)];
  const text = await control.ask("ofproto/trace", args, action);
  const passes = parseTrace(text);
  const last = passes.at(-1);
  const hop = last?.hops.at(-1);
  if (last === undefined || hop === undefined || packet.tunnel !== undefined) return { passes, text };
  if (!hop.lines.some((line) => line.t === "warning" && line.text === asNode)) return { passes, text };
  const rest = await control.ask(
    "ofproto/trace-packet-out",
    restOf(bridge, last.flow, tunnelKey(passes), hop.table),
    action,
  );
  // The first pass of this answer is its own actions, and then this table again.
  const [restPass] = parseTrace(rest);
  if (restPass === undefined) return { passes, text };
  const hops = [...last.hops.slice(0, -1), ...restPass.hops];
  return { passes: [...passes.slice(0, -1), { ...restPass, flow: last.flow, hops }], text: `${text}\n${rest}` };
}

/**
 * When a packet with a chosen tunnel returns from connection tracking, `ofproto/trace` mistakes it for one that came
 * through that tunnel and drops it; real packets are not affected. So the rest of the path is traced from the last
 * table, with an action that chooses the tunnel.
 */
function restOf(bridge: string, flow: string, key: number, table: number): readonly string[] {
  const parts = flow.split(",");
  const kept = parts.filter((part) => !/^(recirc_id|ct_\w+|tun_\w+|gtpu_\w+|vlan_tci|nw_frag)=|^eth$/.test(part));
  const set = parts.flatMap((part) => {
    const [, field, value] = /^(tun_dst|tun_ipv6_dst)=(.+)$/.exec(part) ?? [];
    return field === undefined || value === "0.0.0.0" || value === "::" ? [] : [`set_field:${value}->${field}`];
  });
  return [
    "--names",
    bridge,
    kept.map((part) => readable(part, parts)).join(","),
    [...set, ...(key === 0 ? [] : [`set_field:${key}->tun_id`]), `resubmit(,${table})`].join(","),
  ];
}

/** Open vSwitch prints ports and ICMP types under names that it reads for TCP and ICMP of IPv4 only. */
function readable(part: string, parts: readonly string[]): string {
  const protocol = parts.find((each) => /^(?:tcp|udp|sctp|icmp)6?$/.test(each)) ?? "";
  if (protocol === "icmp6") return part.replace(/^icmp_/, "icmpv6_");
  return part.replace(/^tp_/, `${protocol.replace("6", "")}_`);
}
