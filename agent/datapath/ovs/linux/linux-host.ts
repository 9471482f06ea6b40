import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Logger } from "../../../../shared/log.ts";
import { contains, formatCidr, formatIp, type Ip } from "../../../../shared/net/ip.ts";
import { parseMac } from "../../../../shared/net/mac.ts";
import type { ClusterNode } from "../../../cluster/node-registry.ts";
import {
  declareNeighbour,
  Errno,
  forgetNeighbour,
  Kernel,
  type Link,
  listAddresses,
  listNeighbours,
  type NetlinkSocket,
  readAddress,
  readNeighbour,
  removeAddress,
  setLink,
} from "../../../protocols/netlink/mod.ts";
import { linkLocal6, loopback } from "../../addresses.ts";
import { addGateway, addressesOf, missingFrom } from "../../linux/gateway.ts";
import { findLink } from "../../linux/host-links.ts";
import { interfaceError, runEach, throwFirst } from "../../linux/kernel-errors.ts";
import { type RouteDevices, setNodeRoutes } from "../../linux/node-routes.ts";
import { ignoreRouters, skipAddressDetection, turnOnForwarding, writeSysctl } from "../../linux/node-sysctls.ts";
import type { NodeRoute, RefusedRoute } from "../../routes.ts";
import type { Encrypted, Gateway, HostNetwork, ServiceWays } from "../overlay-node.ts";
import { virtualMac } from "../pipeline/registers.ts";
import type { Encryption } from "./encryption/encryption.ts";
import type { KernelIsolation } from "./kernel-isolation.ts";
import type { ServiceSets } from "./service-sets.ts";
import { isLinkLocal, moveAddresses } from "./uplink.ts";
import { UplinkNotes } from "./uplink-record.ts";

/**
 * The node's own network on Linux, in the calling thread's namespace. Nothing is cached; the kernel is asked each time.
 */
export class LinuxHost implements HostNetwork {
  readonly #socket: NetlinkSocket;
  readonly #gateway: string;
  readonly #notes: UplinkNotes;
  readonly #logger: Logger;
  readonly #isolation: KernelIsolation | undefined;
  readonly #services: ServiceSets | undefined;
  readonly #encryption: Encryption | undefined;

  /**
   * @param gateway name of the gateway port
   * @param dataDir where the node's addresses on the bridge are noted
   * @param isolation where the switch is in user space
   * @param services where the switch balances also what the node and others ask for
   * @param encryption absent: nothing is encrypted
   */
  constructor(
    socket: NetlinkSocket,
    gateway: string,
    dataDir: string,
    logger: Logger,
    isolation?: KernelIsolation,
    services?: ServiceSets,
    encryption?: Encryption,
  ) {
    this.#socket = socket;
    this.#gateway = gateway;
    this.#notes = new UplinkNotes(dataDir);
    this.#logger = logger;
    this.#isolation = isolation;
    this.#services = services;
    this.#encryption = encryption;
  }

  macOf(uplink: string): Promise<string> {
    return inKernel(`look at the uplink "${uplink}"`, () => this.#require(uplink).mac);
  }

  hasInterface(name: string): Promise<boolean> {
    return inKernel(`look for the interface "${name}"`, () => findLink(this.#socket, { name }) !== undefined);
  }

  useGateway({ name, addresses, mtu }: Gateway): Promise<void> {
    return inKernel(`set up the gateway "${name}"`, () => {
      const link = this.#require(name);
      // The node must send ARP for pods with the gateway's address, the only one that the switch accepts.
      for (const key of ["arp_ignore", "arp_announce"])
        writeSysctl(`/proc/sys/net/ipv4/conf/${name}/${key}`, "1", `set up the gateway "${name}"`);
      ignoreRouters(name);
      skipAddressDetection(name);
      if (!link.up || link.mtu !== mtu) this.#socket.run(setLink(name, link.index, { up: true, mtu }));
      const standing = addressesOf(this.#socket, link).filter((address) => !isLinkLocal(address));
      // Gateway addresses of earlier subnets are removed; without own subnets the addresses belong to another plugin.
      const stale = addresses.length === 0 ? [] : missingFrom(addresses, standing);
      for (const address of stale) this.#socket.run(removeAddress(name, link.index, address));
      for (const address of missingFrom(standing, addresses)) addGateway(this.#socket, link, address);
      turnOnForwarding([{ subnets: addresses, device: name }]);
    });
  }

  moveAddresses(from: string, to: string): Promise<void> {
    return inKernel(`move the node's addresses from "${from}" to "${to}"`, () => {
      moveAddresses(this.#socket, this.#require(from), this.#require(to));
      this.#notes.forget();
    });
  }

  keepAddresses(uplink: string, bridge: string): Promise<void> {
    return inKernel(`keep the node's addresses on "${bridge}"`, () => {
      restoreAddresses(this.#socket, this.#notes, uplink, bridge, this.#logger);
      moveAddresses(this.#socket, this.#require(uplink), this.#require(bridge));
      this.#note(uplink, this.#require(bridge));
    });
  }

  /** A full disk must not stop the set-up; the last notes may still serve. */
  #note(uplink: string, bridge: Link): void {
    try {
      this.#notes.note(this.#socket, uplink, bridge);
    } catch (caught) {
      if (!(caught instanceof CniError)) throw caught;
      this.#logger.warn("the node's addresses would go with the bridge: they are not noted", { error: caught.message });
    }
  }

  leaveToSwitch(names: readonly string[]): Promise<void> {
    return inKernel("leave interfaces to the switch", () => this.#isolation?.leaveToSwitch(names));
  }

  async encrypt(nodes: Iterable<ClusterNode>): Promise<Encrypted> {
    try {
      return { strangers: (await this.#encryption?.wireguard?.bring(nodes)) ?? [] };
    } catch (caught) {
      // The rest of the node goes on; nothing leaves to other nodes' pods.
      return { strangers: [], failure: interfaceError("encrypt what goes to other nodes", caught).message };
    }
  }

  async leadPastKernel(interfaces: readonly string[]): Promise<boolean> {
    try {
      return (await this.#encryption?.leadPastKernel(interfaces)) ?? true;
    } catch (caught) {
      throw interfaceError("look at the interfaces of the switch", caught);
    }
  }

  setRoutes(routes: readonly NodeRoute[], keptVia: readonly Ip[] = []): Promise<readonly RefusedRoute[]> {
    return inKernel("set the routes to other nodes' pods", () => {
      const gateway = this.#require(this.#gateway);
      const neighbours = declareNeighbours(this.#socket, gateway, routes);
      const refused = setNodeRoutes(this.#socket, routes, this.#devices(gateway), keptVia).filter(
        ({ route }) => !neighbours.has(route),
      );
      return [...[...neighbours].map(([route, why]) => ({ route, why })), ...refused];
    });
  }

  ownAddresses(): Promise<readonly Ip[]> {
    return inKernel("list the node's addresses", () => {
      const all = this.#socket.dump(listAddresses(0), readAddress).map(({ address: { ip } }) => ip);
      const excluded = [...Object.values(loopback), linkLocal6];
      return all.filter((ip) => !excluded.some((block) => block.ip.family === ip.family && contains(block, ip)));
    });
  }

  serve(ways: Pick<ServiceWays, "nodePorts" | "refused">): Promise<void> {
    return inKernel("tell the node of services", () => this.#services?.set(ways));
  }

  #devices(gateway: Link): RouteDevices {
    const encrypted = this.#encryption?.wireguard?.link;
    return { gateway, ...(encrypted === undefined ? {} : { encrypted }) };
  }

  #require(name: string): Link {
    const link = findLink(this.#socket, { name });
    if (link !== undefined) return link;
    throw new CniError(CniCode.interfaceFailure, `Cannot use the interface "${name}": it is missing`);
  }
}

/** Puts the node's addresses back onto the uplink where they went with the bridge, and says so. @throws {NetlinkError} */
function restoreAddresses(
  socket: NetlinkSocket,
  notes: UplinkNotes,
  uplink: string,
  bridge: string,
  logger: Logger,
): boolean {
  const restored = notes.restore(socket, uplink, bridge);
  if (restored.length === 0) return false;
  const addresses = restored.map(formatCidr);
  logger.warn("the node's addresses went with an earlier bridge and are put back", { uplink, bridge, addresses });
  return true;
}

/**
 * The same at an agent's start, in the calling thread's network namespace, because joining needs the node's addresses
 * and happens before the switch is set up.
 * @throws {CniError} 102
 */
export function restoreNodeAddresses(dataDir: string, uplink: string, bridge: string, logger: Logger): boolean {
  try {
    using kernel = new Kernel();
    using socket = kernel.openSocket();
    return restoreAddresses(socket, new UplinkNotes(dataDir), uplink, bridge, logger);
  } catch (caught) {
    throw interfaceError(`put the node's addresses back onto "${uplink}"`, caught);
  }
}

async function inKernel<T>(action: string, work: () => T): Promise<T> {
  try {
    return work();
  } catch (caught) {
    throw interfaceError(action, caught);
  }
}

/**
 * Sets exactly the static neighbours on the gateway port whose next hops do not answer ARP. Other static entries have
 * other MACs and stay.
 * @returns why a route has none
 * @throws {NetlinkError} where the kernel cannot be asked
 */
export function declareNeighbours(
  socket: NetlinkSocket,
  { name, index }: Link,
  routes: readonly NodeRoute[],
): ReadonlyMap<NodeRoute, string> {
  const declared = new Map(
    routes.flatMap(({ via, mac }) => (mac === undefined ? [] : [[formatIp(via), { via, mac }]])),
  );
  const standing = socket
    .dump(listNeighbours(index), readNeighbour)
    .filter((one) => one.index === index && one.permanent && one.mac === virtualMac);
  const known = new Set(standing.map(({ ip }) => formatIp(ip)));
  const added = [...declared.values()].flatMap(({ via, mac }) => {
    const bytes = parseMac(mac);
    return known.has(formatIp(via)) || bytes === undefined ? [] : [{ via, bytes }];
  });
  const messages = added.map(({ via, bytes }) => declareNeighbour(name, index, via, bytes));
  const refusals = runEach(socket, messages, Errno.EEXIST);
  const stale = standing.filter(({ ip }) => !declared.has(formatIp(ip)));
  const gone = stale.map(({ ip }) => forgetNeighbour(name, index, ip));
  throwFirst(runEach(socket, gone));
  const why = new Map([...refusals].map(([at, { message }]) => [formatIp(added[at]!.via), message]));
  return new Map(
    routes.flatMap((route) => {
      const refusal = why.get(formatIp(route.via));
      return refusal === undefined ? [] : [[route, refusal]];
    }),
  );
}
