import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { type Cidr, formatCidr, formatIp, gatewayIn, sameIp } from "../../../shared/net/ip.ts";
import {
  deleteLink,
  deleteTable,
  Errno,
  isErrno,
  type Link,
  type NetlinkSocket,
  type Table,
} from "../../protocols/netlink/mod.ts";
import { attempt, type HostChange } from "../host-change.ts";
import { addressesOn, findLink, listAllLinks } from "../linux/host-links.ts";
import { removeNodeRoutes } from "../linux/node-routes.ts";
import { packetTable } from "../linux/packet-rules.ts";
import { PodPairs } from "../linux/pod-pairs.ts";
import { policyTable } from "./policies/bridge-policies.ts";
import { serviceTable } from "./services/service-sets.ts";

/** The parts of a network that say what was made for it. */
interface Leaving {
  readonly name: string;
  readonly bridge: string;
}

/**
 * Undoes what agents with this data path have changed on the node: pods' interfaces, bridges, packet rules, routes.
 * Failures are reported, and the rest is still done.
 */
export async function cleanUpBridges(networks: readonly Leaving[], logger: Logger): Promise<readonly HostChange[]> {
  await using pairs = new PodPairs(logger);
  const { socket, kernel, sweeper } = pairs.tools;
  using filters = kernel.openPacketFilterSocket();
  const changes: HostChange[] = [
    await attempt("routes", "routes to other nodes' pods", async () => removeNodeRoutes(socket)),
  ];
  for (const { name, bridge } of networks) {
    changes.push(
      await attempt("pods", `interfaces of network "${name}"`, async () => {
        const owners = pairs.attachments((network) => network === name).map(({ alias }) => alias.owner);
        for (const owner of owners) pairs.takeOutOfService(owner);
        await sweeper.sweep();
        return owners.length > 0;
      }),
      await attempt("bridge", `"${bridge}"`, () => removeBridge(socket, bridge)),
    );
    const ofBridge = packetTable({ bridge });
    const removed = (table: Table): Promise<HostChange> =>
      attempt("packet rules", `table "${table.family} ${table.name}"`, () =>
        unlessGone(Errno.ENOENT, () => filters.transact([deleteTable(table)])),
      );
    changes.push(
      await removed({ family: "inet", name: ofBridge }),
      await removed({ family: "bridge", name: ofBridge }),
    );
    for (const table of [policyTable(bridge), serviceTable(bridge)]) {
      const change = await removed(table);
      // Most nodes have none.
      if (change.did !== "was gone") changes.push(change);
    }
  }
  return changes;
}

/** The bridge stays if others have added anything to it. @throws {CniError | NetlinkError} */
function removeBridge(socket: NetlinkSocket, name: string): boolean {
  const link = findLink(socket, { name });
  if (link === undefined) return false;
  const strange =
    link.kind === "bridge" ? foreignOn(socket, link) : [`it is of kind "${link.kind ?? "hardware"}", wanted a bridge`];
  if (strange.length > 0)
    throw new CniError(
      CniCode.interfaceFailure,
      `Cannot remove the bridge "${name}": ${strange.join(", ")}; "ip link del ${name}" takes it away all the same`,
    );
  return unlessGone(Errno.ENODEV, () => socket.run(deleteLink(name, link.index)));
}

/** Remaining ports are not our pods', and other addresses than gateways' are not ours. */
function foreignOn(socket: NetlinkSocket, bridge: Link): readonly string[] {
  const ports = listAllLinks(socket).filter(({ master }) => master === bridge.index);
  const addresses = (addressesOn(socket, bridge.index) ?? []).filter(({ address }) => !isOurs(address));
  return [
    ...ports.map((port) => `it has the port "${port.name}", which is not ours`),
    ...addresses.map(({ address }) => `it has the address ${formatCidr(address)}, which is not ours`),
  ];
}

/** The gateway address of any subnet, or the kernel's link-local address. */
const isOurs = ({ ip, prefix }: Cidr): boolean =>
  sameIp(ip, gatewayIn({ ip, prefix })) || (ip.family === 6 && formatIp(ip).startsWith("fe80:"));

/** @returns whether it existed */
function unlessGone(errno: number, work: () => void): boolean {
  try {
    work();
    return true;
  } catch (caught) {
    if (isErrno(caught, errno)) return false;
    throw caught;
  }
}
