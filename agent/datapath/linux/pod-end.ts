import { unreachable } from "../../../shared/assert.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  addAddress,
  addRoute,
  Errno,
  type Kernel,
  type Link,
  type LinkAddress,
  listRoutes,
  type Message,
  type NetlinkError,
  type NetlinkSocket,
  type NetworkNamespace,
  type Route,
  readRoute,
  setIpv4Options,
  setLink,
} from "../../protocols/netlink/mod.ts";
import { gatewayOf } from "../routes.ts";
import { addressesOn, findLink } from "./host-links.ts";
import type { Plan } from "./plan.ts";

/**
 * Opens a sandbox's network namespace; the caller disposes it.
 * @throws {CniError} code 4 where the path is missing, something else, or the node's own namespace
 */
export function openSandbox(kernel: Kernel, path: string): NetworkNamespace {
  const opened = kernel.namespaceAt(path);
  switch (opened.t) {
    case "open":
      return opened.namespace;
    case "missing":
      throw wrong(path, "does not exist");
    case "other":
      throw wrong(path, "is not a network namespace");
    case "own":
      throw wrong(path, "is the network namespace of the node itself");
    case "refused":
      throw wrong(path, `cannot be opened (${opened.reason})`);
    default:
      return unreachable(opened);
  }
}

const wrong = (path: string, is: string): CniError =>
  new CniError(
    CniCode.invalidEnvironment,
    `Cannot enter the sandbox: CNI_NETNS "${path}" ${is}, wanted the network namespace of a sandbox`,
  );

const loopbackIndex = 1;

/** A pod's interface, as far as it takes to set it up. */
export type PodLink = Pick<Link, "index" | "name" | "mtu">;

/** The sandbox's side of an attachment: one socket inside its namespace, for as long as one call lasts. */
export class PodEnd implements Disposable {
  readonly #kernel: Kernel;
  readonly #namespace: NetworkNamespace;
  readonly #socket: NetlinkSocket;

  constructor(kernel: Kernel, namespace: NetworkNamespace) {
    this.#kernel = kernel;
    this.#namespace = namespace;
    this.#socket = kernel.openSocketIn(namespace);
  }

  /** The sandbox's interface of that name, if it has one. */
  link(ifname: string): Link | undefined {
    return findLink(this.#socket, { name: ifname });
  }

  /** The interface that was just made as planned; `undefined` where somebody has deleted it since. */
  made({ owner: { ifname }, mtu }: Plan): PodLink | undefined {
    const index = this.#socket.indexOf(ifname);
    return index === undefined ? undefined : { index, name: ifname, mtu };
  }

  /** None if the interface has been deleted since it was looked up. */
  addresses(link: Link): readonly LinkAddress[] {
    return addressesOn(this.#socket, link.index) ?? [];
  }

  /** Of both families, in every table: chained plugins move routes to tables of their own. */
  routes(): readonly Route[] {
    return [...this.#socket.dump(listRoutes(4), readRoute), ...this.#socket.dump(listRoutes(6), readRoute)];
  }

  /**
   * Gives the interface its addresses and routes and brings it up. What is there already stays.
   * @throws {NetlinkError | CniError}
   */
  configure(link: PodLink, plan: Plan): void {
    this.#ignoreRouters(link.name);
    const first = this.#apply(link, plan);
    if (first === undefined) return;
    // Runtimes hand over namespaces with IPv6 turned off (net.ipv6.conf.default), also where the pod gets such an address.
    const wantsIpv6 = plan.ipam.ips.some((ip) => ip.address.ip.family === 6);
    if (first.errno !== Errno.EACCES || !wantsIpv6) throw first;
    this.#turnOnIpv6(link.name);
    const second = this.#apply(link, plan);
    if (second !== undefined) throw second;
  }

  /** Answers the first refusal that matters. Nothing is undone, because the caller deletes the interface. */
  #apply(link: PodLink, plan: Plan): NetlinkError | undefined {
    const { index, name } = link;
    const { ips, routes } = plan.ipam;
    const mac = plan.macRequested ? { mac: plan.podMac } : {};
    const setup: Message[] = [
      setLink("lo", loopbackIndex, { up: true }),
      setIpv4Options(name, index, { arpNotify: true, acceptRedirects: false }),
      ...ips.map((ip) => addAddress(name, index, ip.address)),
      setLink(name, index, { ...mac, up: true }),
      ...routes.map((route) => addRoute({ ...route, index, gateway: gatewayOf(route, ips) })),
    ];
    return this.#socket.batch(setup).find((refusal) => refusal !== undefined && refusal.errno !== Errno.EEXIST);
  }

  /**
   * Announces the MAC of these addresses on the bridge, because caches may still hold that of an earlier pod. Setting
   * the MAC again makes the kernel announce all addresses.
   */
  announce(link: PodLink, mac: Uint8Array, plan: Plan): void {
    if (plan.ipam.ips.some((ip) => ip.address.ip.family === 6)) {
      try {
        this.#kernel.writeSysctl(`/proc/sys/net/ipv6/conf/${link.name}/ndisc_notify`, "1", this.#namespace);
      } catch {
        // A read-only /proc/sys: neighbours find out by themselves within seconds.
      }
    }
    this.#socket.run(setLink(link.name, link.index, { mac }));
  }

  /** Turns checksum offload off in the pod, because some switches forward packets unchanged. */
  sendWholeChecksums(ifname: string): void {
    this.#socket.turnOffChecksumOffload(ifname);
  }

  /**
   * Makes the pod's interface ignore router messages, so that it has only the addresses and routes that it was given.
   */
  #ignoreRouters(ifname: string): void {
    for (const name of ["accept_ra", "accept_redirects"]) {
      try {
        this.#kernel.writeSysctl(`/proc/sys/net/ipv6/conf/${ifname}/${name}`, "0", this.#namespace);
      } catch {
        // A read-only /proc/sys, or a kernel without IPv6: other pods' ports let none of these in.
        return;
      }
    }
  }

  #turnOnIpv6(ifname: string): void {
    for (const name of ["lo", ifname]) {
      try {
        this.#kernel.writeSysctl(`/proc/sys/net/ipv6/conf/${name}/disable_ipv6`, "0", this.#namespace);
      } catch (cause) {
        throw new CniError(
          CniCode.interfaceFailure,
          `Cannot turn on IPv6 for "${name}" in "${this.#namespace.path}": ${reasonOf(cause)}, wanted a writable /proc/sys`,
          { cause },
        );
      }
    }
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }
}
