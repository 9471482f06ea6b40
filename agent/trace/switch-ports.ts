import { CniCode, CniError } from "../../shared/errors.ts";
import { type Ip, parseIp } from "../../shared/ip.ts";
import { OvsdbClient } from "../ovsdb/mod.ts";

/** A port of the bridge, as the database knows it. */
export interface SwitchPort {
  readonly name: string;
  readonly ofport: number;
  readonly kind: "pod" | "gateway" | "tunnel" | "uplink" | "local" | "other";
  /** Empty where the database does not have it. */
  readonly mac: string;
  /** Of a pod, `namespace/name` where CNI_ARGS named it. */
  readonly pod?: { readonly name: string | undefined; readonly ips: readonly Ip[] };
}

export interface PortNames {
  readonly bridge: string;
  readonly gateway: string;
  readonly tunnel: string;
  readonly uplink: string | undefined;
}

const monitored = {
  Bridge: ["name", "ports"],
  Port: ["name", "interfaces", "external_ids"],
  Interface: ["name", "ofport", "mac_in_use"],
} as const;

const action = "look for the pods' ports";
const timeoutMs = 5_000;
/** OFPP_LOCAL is the bridge's own port. */
const localPort = 0xfffe;

/**
 * The bridge's ports that have a number.
 * @param database as `parseAddress` of `agent/ovsdb` takes it
 * @throws {CniError} 11 where the database does not answer, 7 where it has no such bridge
 */
export async function readPorts(database: string, names: PortNames): Promise<readonly SwitchPort[]> {
  using client = new OvsdbClient({ address: database, monitored });
  try {
    await client.ready(timeoutMs);
  } catch (caught) {
    const is = caught instanceof Error ? caught.message : String(caught);
    throw new CniError(CniCode.tryAgainLater, is.replace("use the database", action), { cause: caught });
  }
  const { view } = client;
  const bridge = view.named("Bridge", names.bridge);
  if (bridge === undefined) {
    const is = `Open vSwitch at "${database}" has no bridge "${names.bridge}"`;
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted the one that the agent has made`);
  }
  return [...bridge.ports].flatMap((uuid) => {
    const port = view.row("Port", uuid);
    const [first] = port?.interfaces ?? [];
    const own = first === undefined ? undefined : view.row("Interface", first);
    if (port === undefined || own?.ofport === undefined || own.ofport < 0) return [];
    const pod = podOf(port.external_ids);
    const mac = pod?.mac ?? own.mac_in_use ?? "";
    return [{ name: port.name, ofport: own.ofport, mac, ...kindOf(port.name, own.ofport, names, pod) }];
  });
}

function kindOf(
  name: string,
  ofport: number,
  names: PortNames,
  pod: ReturnType<typeof podOf>,
): Pick<SwitchPort, "kind" | "pod"> {
  if (pod !== undefined) return { kind: "pod", pod: { name: pod.name, ips: pod.ips } };
  if (name === names.gateway) return { kind: "gateway" };
  if (name === names.tunnel) return { kind: "tunnel" };
  if (name === names.uplink) return { kind: "uplink" };
  return { kind: ofport === localPort ? "local" : "other" };
}

function podOf(ids: ReadonlyMap<string, string>) {
  const mac = ids.get("attached-mac");
  const ips = (ids.get("ip-address") ?? "").split(",").map((text) => parseIp(text.trim()));
  if (mac === undefined) return undefined;
  const [namespace, name] = [ids.get("pod-namespace") ?? "", ids.get("pod-name") ?? ""];
  return { mac, ips: ips.filter((ip) => ip !== undefined), name: name === "" ? undefined : `${namespace}/${name}` };
}
