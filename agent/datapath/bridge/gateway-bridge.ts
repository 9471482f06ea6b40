import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatCidr } from "../../../shared/net/ip.ts";
import { createBridge, type Link, type NetlinkSocket, setLink } from "../../protocols/netlink/mod.ts";
import { addGateway, missingGateways } from "../linux/gateway.ts";
import { findLink } from "../linux/host-links.ts";
import { gatewayMac } from "../linux/names.ts";
import { ignoreRouters, skipAddressDetection } from "../linux/node-sysctls.ts";
import { defaultMtu } from "../linux/plan.ts";
import type { BridgeNetwork } from "./options.ts";

/**
 * Creates the network's bridge or completes it; additions of others stay.
 * @returns the bridge, and whether it is new, so that its ports have to be put back
 * @throws {CniError | NetlinkError} 102 where an interface of that name is not a bridge
 */
export function ensureBridge(socket: NetlinkSocket, network: BridgeNetwork): { readonly link: Link; created: boolean } {
  const { bridge: name, mtu } = network;
  const standing = findLink(socket, { name });
  if (standing !== undefined && standing.kind !== "bridge") throw notABridge(name, standing);
  if (standing === undefined)
    socket.run(createBridge({ name, mac: gatewayMac(network.bridge, network.subnets), mtu: mtu ?? defaultMtu }));
  const link = standing ?? requireLink(socket, name);
  ignoreRouters(name);
  skipAddressDetection(name);
  if (!link.up) socket.run(setLink(name, link.index, { up: true }));
  if (mtu !== undefined && link.mtu !== mtu) socket.run(setLink(name, link.index, { mtu }));
  for (const address of missingGateways(socket, network.subnets, link)) addGateway(socket, link, address);
  return { link, created: standing === undefined };
}

function requireLink(socket: NetlinkSocket, name: string): Link {
  const link = findLink(socket, { name });
  if (link !== undefined) return link;
  throw new CniError(CniCode.interfaceFailure, `Cannot use the bridge "${name}": somebody deleted it just now`);
}

const notABridge = (name: string, link: Link): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot use the interface "${name}" as bridge: it is of kind "${link.kind ?? "hardware"}", wanted a bridge or no interface of that name`,
  );

/** What is missing of the network's bridge now, in sentences. */
export function missingFromBridge(socket: NetlinkSocket, network: BridgeNetwork): readonly string[] {
  const { bridge: name } = network;
  const link = findLink(socket, { name });
  if (link === undefined) return [`the bridge "${name}" is missing`];
  if (link.kind !== "bridge") return [`the interface "${name}" is not a bridge`];
  const gateways = missingGateways(socket, network.subnets, link);
  return [
    ...(link.up ? [] : [`the bridge "${name}" is down`]),
    ...gateways.map((address) => `the bridge "${name}" lacks the gateway address "${formatCidr(address)}"`),
  ];
}
