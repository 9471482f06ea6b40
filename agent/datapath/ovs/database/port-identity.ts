import { wrongContainerId, wrongIfname, wrongNetworkName } from "../../../../shared/cni/names.ts";
import type { Owner, Pod } from "../../../../shared/cni/types.ts";
import { formatIp, type Ip, parseIp } from "../../../../shared/net/ip.ts";
import type { PodPort } from "../overlay-node.ts";

/** The role of a port of ours, in `external_ids` of its row, by which a later agent recognises it. */
export type PortRole = "gateway" | "tunnel" | "peer" | "uplink" | "pod";

const roleKey = "pipette-type";

export const roleIds = (role: PortRole): Readonly<Record<string, string>> => ({ [roleKey]: role });

/** `undefined` where a port is somebody else's. */
export const roleOf = (ids: ReadonlyMap<string, string>): string | undefined => ids.get(roleKey);

/** What `external_ids` keeps of a pod's port. */
type PortIdentity = Omit<PodPort, "port" | "type">;

const key = {
  network: "pipette-network",
  sandbox: "pipette-sandbox",
  ifname: "pipette-ifname",
  ownLease: "pipette-own-lease",
  device: "pipette-device",
  vnid: "pipette-vnid",
  // As the reference system names them.
  mac: "attached-mac",
  ips: "ip-address",
  podNamespace: "pod-namespace",
  podName: "pod-name",
  podUid: "pod-uid",
  netns: "net-ns",
} as const;

export function formatIdentity(identity: PortIdentity): Readonly<Record<string, string>> {
  const { owner, mac, ips, pod, netns, ownLease, vnid, device } = identity;
  return {
    ...roleIds("pod"),
    [key.network]: owner.network,
    [key.sandbox]: owner.sandboxId,
    [key.ifname]: owner.ifname,
    [key.ownLease]: String(ownLease),
    [key.vnid]: String(vnid ?? 0),
    [key.mac]: mac,
    [key.ips]: ips.map(formatIp).join(","),
    [key.netns]: netns,
    ...(device === undefined ? {} : { [key.device]: device }),
    ...(pod === undefined ? {} : { [key.podNamespace]: pod.namespace, [key.podName]: pod.name, [key.podUid]: pod.uid }),
  };
}

/** `undefined` if the port is no pod's of ours, or its data is invalid. */
export function parseIdentity(ids: ReadonlyMap<string, string>): PortIdentity | undefined {
  const owner = ownerOf(ids);
  const mac = ids.get(key.mac) ?? "";
  const ips = ipsOf(ids.get(key.ips) ?? "");
  const vnid = Number(ids.get(key.vnid) ?? 0);
  const isSound = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac) && Number.isInteger(vnid) && vnid >= 0 && vnid < 2 ** 24;
  if (owner === undefined || ips === undefined || !isSound) return undefined;
  const pod = podOf(ids);
  const device = ids.get(key.device);
  return {
    owner,
    mac,
    ips,
    netns: ids.get(key.netns) ?? "",
    ownLease: ids.get(key.ownLease) === "true",
    vnid,
    ...(pod === undefined ? {} : { pod }),
    ...(device === undefined ? {} : { device }),
  };
}

/** The owner of a pod's port, also if its other data is invalid; `undefined` if it is not ours. */
export function ownerOf(ids: ReadonlyMap<string, string>): Owner | undefined {
  if (roleOf(ids) !== "pod") return undefined;
  const network = ids.get(key.network) ?? "";
  const sandboxId = ids.get(key.sandbox) ?? "";
  const ifname = ids.get(key.ifname) ?? "";
  const wrong = wrongNetworkName(network) ?? wrongContainerId(sandboxId) ?? wrongIfname(ifname);
  return wrong === undefined ? { network, sandboxId, ifname } : undefined;
}

function podOf(ids: ReadonlyMap<string, string>): Pod | undefined {
  const namespace = ids.get(key.podNamespace);
  if (namespace === undefined) return undefined;
  return { namespace, name: ids.get(key.podName) ?? "", uid: ids.get(key.podUid) ?? "" };
}

function ipsOf(text: string): readonly Ip[] | undefined {
  const ips = text === "" ? [] : text.split(",").map(parseIp);
  return ips.every((ip) => ip !== undefined) ? ips : undefined;
}
