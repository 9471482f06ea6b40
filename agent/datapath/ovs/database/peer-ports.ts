import { createHash } from "node:crypto";
import { formatIp, type Ip } from "../../../../shared/net/ip.ts";
import type { TunnelOptions } from "../../../config/ovs-config.ts";
import { insertPort, removePorts, Transaction, transactAndApply } from "../../../protocols/ovsdb/mod.ts";
import type { IpsecOptions } from "../options.ts";
import { roleIds, roleOf } from "./port-identity.ts";
import { interfaceNamed, portNamed, portsOf, type SwitchDatabase } from "./switch-database.ts";

/**
 * Tunnels to single nodes beside the one for all: ovs-monitor-ipsec has what goes through such a one encrypted, and
 * takes what it is to know from the options of its row (ovs-monitor-ipsec(8)). Their names are in its connections too.
 */
export interface PeerPort {
  readonly node: string;
  readonly remote: Ip;
}

export interface PeerPortOptions {
  readonly tunnel: TunnelOptions;
  readonly ipsec: IpsecOptions;
  /** Absent: a certificate whose subject's CN is the node's name. */
  readonly psk?: string;
}

const nodeKey = "pipette-node";
/** How long a silent node counts as there, in the words of ipsec.conf(5). */
const dpdDelay = "10s";

/** Options of the row: what the tunnel is, and `ipsec_*`, lines of the connection that strongSwan gets. */
export function peerPortOptions({ node, remote }: PeerPort, how: PeerPortOptions): Readonly<Record<string, string>> {
  const { tunnel, ipsec, psk } = how;
  const isUserspace = ipsec.esp === "userspace";
  return {
    remote_ip: formatIp(remote),
    // Also packets with a project's number belong to it.
    key: "flow",
    ...(tunnel.checksum ? { csum: "true" } : {}),
    ...(psk === undefined ? { remote_name: node } : { psk }),
    ...(ipsec.forceUdp ? { ipsec_forceencaps: "yes" } : {}),
    // A node that comes back has forgotten its keys, and what is sent with them would be lost for hours.
    ipsec_dpddelay: dpdDelay,
    ipsec_dpdaction: isUserspace ? "clear" : "hold",
    // strongSwan itself encrypts in tunnel mode alone, and does not notice a first packet: the agent has it begin.
    ...(isUserspace ? { ipsec_type: "tunnel", ipsec_auto: "add" } : {}),
  };
}

const longestName = 15;
const hashDigits = 6;
/** That many names are tried for a node. */
const tries = 64;

/** The end of the node's name, for people, and a hash of all of it: `p-worker07-3fa09c`. */
function peerPortName(node: string, attempt: number): string {
  const hash = createHash("sha256").update(`${attempt}/${node}`).digest("hex").slice(0, hashDigits);
  const readable = node.replace(/[^a-z0-9]/g, "").slice(-(longestName - hashDigits - "p--".length));
  return `p-${readable}-${hash}`;
}

/**
 * A name for each node: the one that its port has, else one that nothing has.
 * @param standing names of present ports by their nodes
 * @param isTaken whether something else in the switch has the name
 */
export function peerPortNames(
  nodes: Iterable<string>,
  standing: ReadonlyMap<string, string>,
  isTaken: (name: string) => boolean,
): ReadonlyMap<string, string> {
  const used = new Set(standing.values());
  const names = new Map<string, string>();
  for (const node of [...nodes].sort()) {
    const attempts = Array.from({ length: tries }, (_, attempt) => peerPortName(node, attempt));
    const name = standing.get(node) ?? attempts.find((one) => !used.has(one) && !isTaken(one));
    // Without one it stays out of reach: with a hash of that many digits this takes somebody's intent.
    if (name === undefined) continue;
    used.add(name);
    names.set(node, name);
  }
  return names;
}

/** A tunnel to a node as the switch has it. */
export interface StandingPeer {
  readonly name: string;
  /** Its number; absent: the switch could not make it. */
  readonly ofport?: number;
  readonly error?: string;
}

/**
 * Brings exactly these tunnels: others go, one with another end or of another type is made anew, and what is right is
 * not touched, since ovs-monitor-ipsec would have new keys agreed.
 * @returns what the switch has, by node
 * @throws {OvsdbError}
 */
export async function bringPeerPorts(
  db: SwitchDatabase,
  bridge: string,
  wanted: readonly PeerPort[],
  how: PeerPortOptions,
): Promise<ReadonlyMap<string, StandingPeer>> {
  const rows = portsOf(db.view, bridge).filter(({ external_ids }) => roleOf(external_ids) === "peer");
  const standing = new Map(rows.map((row) => [row.external_ids.get(nodeKey) ?? "", row.name]));
  const names = peerPortNames(
    wanted.map(({ node }) => node),
    standing,
    (name) => portNamed(db.view, name) !== undefined,
  );
  const byName = new Map(wanted.map((port) => [names.get(port.node), port]));
  const transaction = new Transaction(`make the tunnels to other nodes on "${bridge}"`);
  const isEnd = ({ name }: { readonly name: string }): boolean => {
    const [port, own] = [byName.get(name), interfaceNamed(db.view, name)];
    return (
      port !== undefined &&
      own?.type === how.tunnel.type &&
      own.options.get("remote_ip") === formatIp(port.remote) &&
      standing.get(port.node) === name
    );
  };
  const kept = rows.filter(isEnd);
  const gone = rows.filter((row) => !kept.includes(row)).map(({ _uuid }) => _uuid);
  if (gone.length > 0) removePorts(transaction, bridge, gone);
  const keptNames = new Set(kept.map(({ name }) => name));
  for (const [name, port] of byName) {
    if (name === undefined) continue;
    const options = peerPortOptions(port, how);
    if (!keptNames.has(name)) insertPeer(transaction, bridge, name, port, how.tunnel.type, options);
    else if (!isSame(interfaceNamed(db.view, name)?.options, options))
      transaction.update("Interface", [["name", "==", name]], { options });
  }
  if (transaction.steps.length > 0) await transactAndApply(db, transaction);
  return new Map([...names].map(([node, name]) => [node, standingPeer(db, name)]));
}

function standingPeer(db: SwitchDatabase, name: string): StandingPeer {
  const { ofport, error } = interfaceNamed(db.view, name) ?? {};
  if (ofport !== undefined && ofport >= 0) return { name, ofport };
  return { name, error: error ?? "the switch has not made it" };
}

function insertPeer(
  transaction: Transaction,
  bridge: string,
  name: string,
  { node }: PeerPort,
  type: string,
  options: Readonly<Record<string, string>>,
): void {
  const ids = { ...roleIds("peer"), [nodeKey]: node };
  insertPort(transaction, bridge, { name, interface: { type, options }, port: { external_ids: ids } });
}

const isSame = (is: ReadonlyMap<string, string> | undefined, wanted: Readonly<Record<string, string>>): boolean =>
  is !== undefined &&
  is.size === Object.keys(wanted).length &&
  Object.entries(wanted).every(([key, value]) => is.get(key) === value);
