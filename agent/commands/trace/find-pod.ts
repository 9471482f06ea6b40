import { formatIp, type Ip, parseIp, sameIp } from "../../../shared/net/ip.ts";
import type { SwitchPort } from "./switch-ports.ts";

/** A pod's port on this node. */
export type PodPort = SwitchPort & Required<Pick<SwitchPort, "pod">>;

export type FoundPod =
  /** With all of its addresses, or the one that was asked for. */
  | { readonly t: "pod"; readonly port: PodPort; readonly ips: readonly Ip[] }
  /** No pod of this node has the address. */
  | { readonly t: "address"; readonly ip: Ip }
  /** No pod of this node has the name; some names that are like it. */
  | { readonly t: "none"; readonly near: readonly string[] }
  /** Pods of several namespaces have the name. */
  | { readonly t: "several"; readonly names: readonly string[] };

/** @param wanted `namespace/name`, a name that one pod has, or an address */
export function findPod(ports: readonly SwitchPort[], wanted: string): FoundPod {
  const pods = ports.filter((port): port is PodPort => port.pod !== undefined);
  const ip = parseIp(wanted);
  if (ip !== undefined) {
    const port = pods.find(({ pod }) => pod.ips.some((own) => sameIp(own, ip)));
    return port === undefined ? { t: "address", ip } : { t: "pod", port, ips: [ip] };
  }
  const isIt = wanted.includes("/")
    ? (name: string) => name === wanted
    : (name: string) => name.slice(name.indexOf("/") + 1) === wanted;
  const found = pods.filter(({ pod }) => pod.name !== undefined && isIt(pod.name));
  const names = new Set(found.map(({ pod }) => pod.name ?? ""));
  if (names.size > 1) return { t: "several", names: [...names].sort() };
  const [port] = found;
  if (port !== undefined) return { t: "pod", port, ips: port.pod.ips };
  return {
    t: "none",
    near: nearest(
      wanted,
      pods.map(({ pod }) => pod.name).filter((name) => name !== undefined),
    ),
  };
}

/** For people: a pod's name, or its addresses where nobody named it. */
export const podName = ({ pod }: PodPort): string => pod.name ?? pod.ips.map(formatIp).join(",");

const mostNear = 5;

/** Those that share the longest beginning with the wanted one, namespace aside, or hold it. */
function nearest(wanted: string, names: readonly string[]): readonly string[] {
  const own = (name: string): string => name.slice(name.indexOf("/") + 1);
  const likeness = (name: string): number => {
    const [a, b] = [own(name), own(wanted)];
    if (a.includes(b) || b.includes(a)) return Math.min(a.length, b.length) + 1;
    const differs = [...a].findIndex((char, i) => char !== b[i]);
    return differs < 0 ? a.length : differs;
  };
  const sorted = [...new Set(names)].sort((a, b) => likeness(b) - likeness(a) || (a < b ? -1 : 1));
  return sorted.slice(0, mostNear);
}
