import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatIp, type Ip, sameIp } from "../../../shared/net/ip.ts";
import { Source, virtualMac } from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { FoundPod } from "./find-pod.ts";
import type { Packet, Protocol } from "./packet.ts";
import type { SwitchPort } from "./switch-ports.ts";

/** Where one end of the connection is. */
export type End = Extract<FoundPod, { t: "pod" | "address" }>;

export interface Journey {
  /** Who opened the connection, and to whom. */
  readonly client: End;
  readonly server: End;
  readonly protocol: Protocol;
  /** The server's answer is followed, not the client's first packet. */
  readonly isReply: boolean;
  /** The packet came from this node of the cluster, with this tunnel key. */
  readonly fromTunnel: { readonly from: Ip; readonly key: number } | undefined;
  /** In place of the sender's own: what a pod sends that it may not. */
  readonly as: { readonly ip: Ip | undefined; readonly mac: string | undefined };
  /** Pods have no neighbours but the gateway, which answers for everybody. */
  readonly isRoutedOnly: boolean;
}

const action = "trace the packet";

/**
 * The packet as its sender would send it.
 * @throws {CniError} 7 where it cannot come in on this node, or the ends have no family in common
 */
export function packetOf(journey: Journey, ports: readonly SwitchPort[]): Packet {
  const { client, server, protocol, isReply, fromTunnel, as } = journey;
  const [sender, receiver] = isReply ? [server, client] : [client, server];
  const [sourceIp, destinationIp] = addressesOf(sender, receiver);
  if (as.ip !== undefined && as.ip.family !== destinationIp.family) throw differentFamilies([as.ip], [destinationIp]);
  const replyTo = client.t === "pod" ? Source.pod : Source.tunnel;
  const common = {
    protocol,
    destination: { ip: destinationIp, mac: macTowards(journey, receiver, ports) },
    ...(isReply ? { replyTo } : {}),
  };
  if (fromTunnel !== undefined) {
    if (sender.t === "pod") {
      const is = `"${formatIp(sourceIp)}" is a pod of this node, and its packets do not come out of the tunnel`;
      throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted the address of another node's`);
    }
    const { ofport } = portOf("tunnel", ports);
    return {
      ...common,
      inPort: ofport,
      source: { ip: as.ip ?? sourceIp, mac: as.mac ?? virtualMac },
      tunnel: fromTunnel,
    };
  }
  if (sender.t !== "pod") {
    const is = `"${formatIp(sourceIp)}" is no pod of this node, so its packets begin elsewhere`;
    const wanted = 'a pod of this node, or "--from-tunnel NODE" for how its packet goes on here';
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted ${wanted}`);
  }
  const { ofport, mac } = sender.port;
  return { ...common, inPort: ofport, source: { ip: as.ip ?? sourceIp, mac: as.mac ?? mac } };
}

/** Pods of a node are neighbours; everybody else is behind the gateway. */
function macTowards({ isRoutedOnly, fromTunnel }: Journey, receiver: End, ports: readonly SwitchPort[]): string {
  if (fromTunnel !== undefined || isRoutedOnly) return virtualMac;
  return receiver.t === "pod" ? receiver.port.mac : portOf("gateway", ports).mac;
}

function portOf(kind: "gateway" | "tunnel", ports: readonly SwitchPort[]): SwitchPort {
  const found = ports.find((port) => port.kind === kind);
  if (found !== undefined) return found;
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot ${action}: the bridge has no ${kind} port, wanted the one that the agent makes in its mode`,
  );
}

const ipsOf = (end: End): readonly Ip[] => (end.t === "pod" ? end.ips : [end.ip]);

function addressesOf(sender: End, receiver: End): readonly [Ip, Ip] {
  for (const from of ipsOf(sender)) {
    const to = ipsOf(receiver).find(({ family }) => family === from.family);
    if (to === undefined) continue;
    if (sameIp(from, to)) break;
    return [from, to];
  }
  throw differentFamilies(ipsOf(sender), ipsOf(receiver));
}

function differentFamilies(...ends: readonly (readonly Ip[])[]): CniError {
  const shown = ends.map((ips) => `"${ips.map(formatIp).join(",")}"`).join(" and ");
  const is = `the ends have the addresses ${shown}`;
  return new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted two different ones of one family`);
}
