import { podTitle } from "../../../shared/cni/pod-name.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatIp, type Ip, parseIp, sameIp } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  bridgeNamed,
  interfaceNamed,
  openDatabase,
  ownerOf,
  type PortRole,
  parseIdentity,
  portsOf,
  roleOf,
} from "../../datapath/ovs/database/mod.ts";

/** A port of the bridge, as the database knows it. */
export interface SwitchPort {
  readonly name: string;
  readonly ofport: number;
  readonly kind: PortRole | "local" | "other";
  /** Empty where the database does not have it. */
  readonly mac: string;
  /** Of a pod, `namespace/name` where CNI_ARGS named it. */
  readonly pod?: { readonly name: string | undefined; readonly ips: readonly Ip[]; readonly owner?: Owner };
}

const action = "look for the pods' ports";
const timeoutMs = 5_000;
/** OFPP_LOCAL is the bridge's own port. */
const localPort = 0xfffe;

/**
 * The bridge's ports that have a number.
 * @param database as `parseAddress` of `agent/protocols/ovsdb` takes it
 * @throws {CniError} 11 where the database does not answer, 7 where it has no such bridge
 */
export async function readPorts(database: string, bridge: string): Promise<readonly SwitchPort[]> {
  using client = openDatabase(database);
  try {
    await client.ready(timeoutMs);
  } catch (caught) {
    const is = reasonOf(caught);
    throw new CniError(CniCode.tryAgainLater, is.replace("use the database", action), { cause: caught });
  }
  const { view } = client;
  if (bridgeNamed(view, bridge) === undefined) {
    const is = `Open vSwitch at "${database}" has no bridge "${bridge}"`;
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted the one that the agent has made`);
  }
  return portsOf(view, bridge).flatMap(({ name, external_ids }) => {
    const { ofport, mac_in_use } = interfaceNamed(view, name) ?? {};
    if (ofport === undefined || ofport < 0) return [];
    const identity = parseIdentity(external_ids);
    const common = { name, ofport, mac: identity?.mac ?? mac_in_use ?? "" };
    if (identity === undefined) return [{ ...common, kind: kindOf(roleOf(external_ids), ofport) }];
    const { pod: named, ips } = identity;
    const podName = named === undefined || named.name === "" ? undefined : podTitle(named);
    const owner = ownerOf(external_ids);
    const pod = { name: podName, ips, ...(owner === undefined ? {} : { owner }) };
    return [{ ...common, kind: "pod", pod }];
  });
}

function kindOf(role: string | undefined, ofport: number): SwitchPort["kind"] {
  if (role === "gateway" || role === "tunnel" || role === "uplink") return role;
  return ofport === localPort ? "local" : "other";
}

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

const maxNear = 5;

/** Names that share the longest prefix with the given one, namespace aside, or contain it. */
function nearest(wanted: string, names: readonly string[]): readonly string[] {
  const own = (name: string): string => name.slice(name.indexOf("/") + 1);
  const likeness = (name: string): number => {
    const [a, b] = [own(name), own(wanted)];
    if (a.includes(b) || b.includes(a)) return Math.min(a.length, b.length) + 1;
    const differs = [...a].findIndex((char, i) => char !== b[i]);
    return differs < 0 ? a.length : differs;
  };
  const sorted = [...new Set(names)].sort((a, b) => likeness(b) - likeness(a) || (a < b ? -1 : 1));
  return sorted.slice(0, maxNear);
}
