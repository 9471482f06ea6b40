import { formatIp } from "../../../shared/net/ip.ts";
import { Priority, tables } from "../../datapath/ovs/pipeline/vocabulary.ts";
import { dropReason } from "./drop-reason.ts";
import type { Packet } from "./packet.ts";
import { tableName } from "./steps.ts";
import type { SwitchPort } from "./switch-ports.ts";
import { type Hop, type Pass, stateAfter, tunnelKey } from "./trace-text.ts";

/** What becomes of the packet. `remark`: what a person should know besides. */
export type Verdict =
  | { readonly t: "delivered"; readonly pod: string; readonly port: string; readonly remark?: string }
  | {
      readonly t: "tunnel";
      /** Its address. */
      readonly node: string;
      /** Its name, where this node's agent knows it. */
      readonly name?: string;
      readonly key: number;
      readonly port: string;
      readonly remark?: string;
    }
  | { readonly t: "out"; readonly to: SwitchPort["kind"]; readonly port: string; readonly remark?: string }
  | { readonly t: "dropped"; readonly table: string; readonly reason: string };

interface Sent {
  /** By number, or by name as `--names` shows it. */
  readonly port: string;
  readonly hop: Hop;
  /** Why nothing came of it, if so. */
  readonly warning: string | undefined;
}

/** @param passes not empty, the last with the packet's end */
export function verdictOf(passes: readonly Pass[], packet: Packet, ports: readonly SwitchPort[]): Verdict {
  const last = passes.at(-1);
  const sent = passes.flatMap(({ hops }) => hops.flatMap((hop) => sentBy(hop, packet)));
  const gone = sent.findLast(({ warning }) => warning === undefined);
  const isOut = last !== undefined && last.datapathActions !== "drop";
  if (gone !== undefined && (isOut || silentNeighbour(gone.hop) !== undefined))
    return outBy(gone, passes, packet, ports);
  const end = sent.at(-1)?.hop ?? last?.hops.at(-1);
  if (end === undefined) return { t: "dropped", table: "", reason: "Open vSwitch does not tell" };
  const bridge = last?.beyond.at(-1);
  const reason =
    bridge === undefined
      ? dropReason(end, stateAfter(last), packet, ports)
      : `the tunnel's own packet does not get past the bridge "${bridge}"`;
  return { t: "dropped", table: tableName(end.table), reason };
}

function sentBy(hop: Hop, packet: Packet): readonly Sent[] {
  const warning = hop.lines.find(({ t }) => t === "warning")?.text;
  return hop.lines.flatMap(({ t, text }) => {
    const number = t === "note" ? /^output port is (\d+)$/.exec(text)?.[1] : undefined;
    if (number !== undefined) return [{ port: number, hop, warning }];
    if (t !== "action") return [];
    if (text === "IN_PORT") return [{ port: String(packet.inPort), hop, warning }];
    if (text === "LOCAL") return [{ port: "LOCAL", hop, warning }];
    const named = /^output:(?!NXM_)"?([^"]+)"?$/.exec(text)?.[1];
    return named === undefined ? [] : [{ port: named, hop, warning }];
  });
}

function outBy({ port, hop }: Sent, passes: readonly Pass[], packet: Packet, ports: readonly SwitchPort[]): Verdict {
  const found = ports.find(
    ({ name, ofport, kind }) => name === port || String(ofport) === port || (port === "LOCAL" && kind === "local"),
  );
  const name = found?.name ?? port;
  if (found?.pod !== undefined) {
    const pod = found.pod.name ?? found.pod.ips.map(formatIp).join(",");
    return { t: "delivered", pod, port: name };
  }
  const remark = silentNeighbour(hop) ?? (found?.kind === "gateway" ? unknownTo(passes, packet) : undefined);
  const more = remark === undefined ? {} : { remark };
  if (found?.kind !== "tunnel") return { t: "out", to: found?.kind ?? "other", port: name, ...more };
  const state = stateAfter(passes.at(-1));
  const nodes = [...state.matchAll(/tun_(?:ipv6_)?dst=([0-9a-f.:]+)/g)].map(([, text]) => text);
  const node = nodes.find((text) => text !== "0.0.0.0" && text !== "::") ?? "";
  return { t: "tunnel", node, key: tunnelKey(passes), port: name, ...more };
}

/** The data path drops what goes to a node whose MAC it does not know yet; it asks for it meanwhile. */
function silentNeighbour({ lines }: Hop): string | undefined {
  const miss = lines.map(({ text }) => /^neighbor cache miss for (\S+)/.exec(text)?.[1]).find((ip) => ip !== undefined);
  return miss === undefined ? undefined : `nobody has answered ARP for ${miss} yet`;
}

const routedBy = (passes: readonly Pass[]): Hop | undefined =>
  passes.flatMap(({ hops }) => hops).findLast(({ table }) => table === tables.L3Forwarding);

/** What no flow forwards goes to the node's kernel: to the world outside, or where a node of the cluster is not known. */
function unknownTo(passes: readonly Pass[], { destination }: Packet): string | undefined {
  const routed = routedBy(passes);
  if (routed?.priority === undefined || routed.priority > Priority.outside) return undefined;
  return `neither a pod of this node nor a known node's subnet has ${formatIp(destination.ip)}, so the node's kernel routes it`;
}
