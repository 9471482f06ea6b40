import { readFileSync, writeFileSync } from "node:fs";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, contains, firstOf, formatCidr, formatIp, plus, sameIp } from "../../../shared/ip.ts";
import {
  addAddress,
  createBridge,
  Errno,
  isRefusal,
  type Link,
  listAddresses,
  type NetlinkSocket,
  readAddress,
  setLink,
} from "../../netlink/mod.ts";
import { linkOrNone } from "./host-links.ts";
import { bridgeMac } from "./names.ts";
import type { BridgeNetwork } from "./options.ts";
import { defaultMtu } from "./plan.ts";

/** The first address of the block, with the block's prefix length. */
export function gatewayAddress(subnet: Cidr): Cidr {
  const ip = plus(firstOf(subnet), 1n);
  if (!contains(subnet, ip)) {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot use the subnet "${formatCidr(subnet)}": it has no room for a gateway, wanted a larger block`,
    );
  }
  return { ip, prefix: subnet.prefix };
}

/**
 * The network's bridge, made or completed where something is missing; what others put on it stays.
 * @returns the bridge, and whether it is new, so that its ports have to be put back
 * @throws {CniError | NetlinkError} 102 where an interface of that name is not a bridge
 */
export function ensureBridge(socket: NetlinkSocket, network: BridgeNetwork): { readonly link: Link; created: boolean } {
  const { bridge: name, mtu } = network;
  const standing = linkOrNone(socket, { name });
  if (standing !== undefined && standing.kind !== "bridge") throw notABridge(name, standing);
  if (standing === undefined) socket.run(createBridge({ name, mac: bridgeMac(network), mtu: mtu ?? defaultMtu }));
  const link = standing ?? requireLink(socket, name);
  if (!link.up) socket.run(setLink(name, link.index, { up: true }));
  if (mtu !== undefined && link.mtu !== mtu) socket.run(setLink(name, link.index, { mtu }));
  for (const address of missingGateways(socket, network, link)) addGateway(socket, link, address);
  return { link, created: standing === undefined };
}

function requireLink(socket: NetlinkSocket, name: string): Link {
  const link = linkOrNone(socket, { name });
  if (link !== undefined) return link;
  throw new CniError(CniCode.interfaceFailure, `Cannot use the bridge "${name}": somebody deleted it just now`);
}

const notABridge = (name: string, link: Link): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot use the interface "${name}" as bridge: it is of kind "${link.kind ?? "hardware"}", wanted a bridge or no interface of that name`,
  );

/** What of the network's bridge is missing now, in sentences. */
export function missingFromBridge(socket: NetlinkSocket, network: BridgeNetwork): readonly string[] {
  const { bridge: name } = network;
  const link = linkOrNone(socket, { name });
  if (link === undefined) return [`the bridge "${name}" is missing`];
  if (link.kind !== "bridge") return [`the interface "${name}" is not a bridge`];
  const gateways = missingGateways(socket, network, link);
  return [
    ...(link.up ? [] : [`the bridge "${name}" is down`]),
    ...gateways.map((address) => `the bridge "${name}" lacks the gateway address "${formatCidr(address)}"`),
  ];
}

/** The gateway addresses that the bridge lacks. */
function missingGateways(socket: NetlinkSocket, network: BridgeNetwork, link: Link): readonly Cidr[] {
  const standing = socket.dump(listAddresses(link.index), readAddress).filter(({ index }) => index === link.index);
  return network.subnets
    .map(gatewayAddress)
    .filter(({ ip, prefix }) => !standing.some(({ address: a }) => sameIp(a.ip, ip) && a.prefix === prefix));
}

function addGateway(socket: NetlinkSocket, link: Link, address: Cidr): void {
  const message = addAddress(link.name, link.index, address);
  const [refusal] = socket.batch([message]);
  if (refusal === undefined || isRefusal(refusal, Errno.EEXIST)) return;
  if (!isRefusal(refusal, Errno.EACCES) || address.ip.family !== 6) throw refusal;
  writeSysctl(`/proc/sys/net/ipv6/conf/${link.name}/disable_ipv6`, "0", `add the gateway "${formatIp(address.ip)}"`);
  socket.run(message);
}

const forwardingPaths = {
  4: "/proc/sys/net/ipv4/ip_forward",
  6: "/proc/sys/net/ipv6/conf/all/forwarding",
} as const;

/** The families of the networks whose packets the node does not forward now. */
export function familiesNotForwarded(networks: readonly BridgeNetwork[]): readonly (4 | 6)[] {
  const used = new Set(networks.flatMap((network) => network.subnets.map((subnet) => subnet.ip.family)));
  return [...used].filter((family) => readSysctl(forwardingPaths[family]) !== "1");
}

/**
 * Turns forwarding on where it is off. For IPv6 this makes the node ignore router advertisements on
 * interfaces whose `accept_ra` is 1, so it is written only where needed.
 * @throws {CniError} 102 naming the file
 */
export function turnOnForwarding(networks: readonly BridgeNetwork[]): void {
  for (const family of familiesNotForwarded(networks)) {
    writeSysctl(forwardingPaths[family], "1", `forward IPv${family} packets`);
  }
}

function readSysctl(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // Without the file the kernel lacks the family; the write says so to whoever needs it.
    return undefined;
  }
}

function writeSysctl(path: string, value: string, action: string): void {
  try {
    writeFileSync(path, value);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new CniError(
      CniCode.interfaceFailure,
      `Cannot ${action}: "${path}" is "${readSysctl(path) ?? "missing"}" and cannot be written (${code}), wanted "${value}"`,
      { cause },
    );
  }
}
