import { NetworkNamespace } from "../../support/network-namespace.ts";
import { etcdMembers, external, type Link, links, routerMac, routerOn } from "./addresses.ts";
import { withoutChecksumOffload } from "./checksum-offload.ts";
import { Wire } from "./wire.ts";

/**
 * What lies between the nodes: two links, each a bridge, and a router that stands on both. Beyond the router is a host
 * that knows nodes only, so whatever it answers came under a node's address.
 */
export class Underlay implements Disposable {
  readonly namespace: NetworkNamespace;
  readonly wire: Wire;

  private constructor(namespace: NetworkNamespace) {
    this.namespace = namespace;
    this.wire = new Wire(namespace);
  }

  static create(): Underlay {
    return new Underlay(NetworkNamespace.create());
  }

  async start(): Promise<void> {
    // A router that still tries out its own addresses asks for nobody else's.
    const noTrying = { "ipv6/conf/default/accept_dad": 0 };
    this.namespace.sysctl({ "ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1, ...noTrying });
    await this.namespace.ip(
      "link set lo up",
      ...external.map((address) => `addr add ${address} dev lo`),
      ...links.flatMap((link) => [
        `link add ${bridgeOf(link)} address ${routerMac(link)} type bridge mcast_snooping 0`,
        `link set ${bridgeOf(link)} up`,
        ...withLength(routerOn(link)).map((address) => `addr add ${address} dev ${bridgeOf(link)} nodad`),
      ]),
      ...etcdMembers.map((address) => `addr add ${address}/24 dev ${bridgeOf("a")}`),
    );
    await this.wire.start();
  }

  /** Lays a cable from a link to `interfaceName` in a node's namespace. */
  async connect(link: Link, number: number, node: NetworkNamespace, interfaceName: string, mac: string): Promise<void> {
    const end = `node${number}`;
    await this.namespace.ip(
      `link add ${end} type veth peer name ${interfaceName} address ${mac} netns ${node.path}`,
      `link set ${end} master ${bridgeOf(link)} up`,
    );
    await this.wire.watch(end);
    withoutChecksumOffload(this.namespace, end);
    withoutChecksumOffload(node, interfaceName);
  }

  /** Pulls the cable out at the link's end, or puts it back. */
  async plug(number: number, state: "up" | "down"): Promise<void> {
    await this.namespace.ip(`link set node${number} ${state}`);
  }

  [Symbol.dispose](): void {
    this.namespace[Symbol.dispose]();
  }
}

const bridgeOf = (link: Link): string => `link-${link}`;

/** As `ip addr` takes a node's or a router's addresses. */
export const withLength = ([v4, v6]: readonly [string, string]): readonly [string, string] => [`${v4}/24`, `${v6}/64`];
