import { podTitle } from "../../../shared/cni/pod-name.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Ip } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  bridgeNamed,
  interfaceNamed,
  openDatabase,
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
  readonly pod?: { readonly name: string | undefined; readonly ips: readonly Ip[] };
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
    const { pod, ips } = identity;
    const podName = pod === undefined || pod.name === "" ? undefined : podTitle(pod);
    return [{ ...common, kind: "pod", pod: { name: podName, ips } }];
  });
}

function kindOf(role: string | undefined, ofport: number): SwitchPort["kind"] {
  if (role === "gateway" || role === "tunnel" || role === "uplink") return role;
  return ofport === localPort ? "local" : "other";
}
