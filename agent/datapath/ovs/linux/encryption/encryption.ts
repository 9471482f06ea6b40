import { CniCode, CniError } from "../../../../../shared/errors.ts";
import { type Cidr, contains, formatCidr } from "../../../../../shared/net/ip.ts";
import type { Kernel, NetlinkSocket } from "../../../../protocols/netlink/mod.ts";
import { findLink } from "../../../linux/host-links.ts";
import type { OvsDataPathOptions } from "../../options.ts";
import type { PeerTunnel } from "../../peer-tunnels.ts";
import { packetsOf } from "../../pipeline/mod.ts";
import { ClearGuard, guardTable, removeClearGuards } from "./clear-guard.ts";
import { Ipsec } from "./ipsec.ts";
import { WireGuard } from "./wireguard.ts";
import { removeDevices } from "./wireguard-link.ts";

type Options = Pick<
  OvsDataPathOptions,
  | "encryption"
  | "ipsec"
  | "credentials"
  | "database"
  | "wireguard"
  | "gateway"
  | "tunnel"
  | "podNetworks"
  | "podSubnets"
  | "nodeAddresses"
  | "dataDir"
  | "logger"
  | "announce"
  | "keysByHand"
  | "nodeName"
>;

interface Tools {
  readonly kernel: Kernel;
  /** In the node's namespace. */
  readonly socket: NetlinkSocket;
  /** The same for packet filters. */
  readonly filters: NetlinkSocket;
}

/** What it is told of the switch, which is made after it. */
export interface SwitchSide {
  /** Called when what encrypts has gone by itself. */
  onLost(): void;
  /** With IPsec, the tunnels to single nodes, by their ports' names. */
  tunnels(): ReadonlyMap<string, PeerTunnel>;
  /** Has a packet that nobody takes sent into these. */
  greet(tunnels: readonly PeerTunnel[]): void;
  /** To whom there is no tunnel, in sentences. */
  unreached(): readonly string[];
}

/** The device of strongSwan's plugin kernel-libipsec, where that encrypts. */
const userspaceDevice = "ipsec0";

/**
 * What the node does so that packets between pods of two nodes leave encrypted or not at all. A start puts the rules in
 * that keep clear packets back before it changes anything else; the way back to none takes them out at its end.
 */
export class Encryption implements AsyncDisposable {
  /** Called with what keeps other nodes' pods from being reached. */
  onTrouble: (trouble: string) => void = () => undefined;
  /** Absent where it is not what encrypts. */
  readonly wireguard: WireGuard | undefined;
  readonly #ipsec: Ipsec | undefined;
  readonly #options: Options;
  readonly #tools: Tools;
  readonly #guard: ClearGuard | undefined;
  /** Interfaces by which a switch in user space sends past the kernel. */
  #past: readonly string[] = [];

  /**
   * @param mtu bytes
   * @throws {CniError} 7 where nobody says what all pods' networks are
   */
  constructor(options: Options, tools: Tools, mtu: number, side: SwitchSide) {
    this.#options = options;
    this.#tools = tools;
    const { encryption, wireguard, ipsec, credentials, gateway, tunnel } = options;
    if (encryption === "none") return;
    const tell = (trouble: string): void => this.onTrouble(trouble);
    this.#guard = new ClearGuard(tools.filters, {
      gateway,
      devices: this.#devices,
      byKernel: encryption === "ipsec" && ipsec.esp === "kernel",
      networks: networksOf(options),
      tunnel: packetsOf(tunnel),
    });
    if (encryption === "wireguard")
      this.wireguard = new WireGuard({ ...options, ...wireguard, ...tools, mtu, onLost: () => side.onLost(), tell });
    else if (credentials !== undefined) this.#ipsec = new Ipsec({ ...options, ...ipsec, ...side, credentials, tell });
  }

  /** The table of packet rules that somebody might delete. */
  get table(): string {
    return guardTable(this.#options.gateway).name;
  }

  /** To be called first. @throws {CniError} 102 */
  async close(): Promise<void> {
    await this.#guard?.install();
  }

  /** To be called last: what is not wanted of what an earlier agent has left goes. @throws {CniError} 102 */
  async open(): Promise<void> {
    const { wireguard, gateway, logger, encryption } = this.#options;
    const { socket } = this.#tools;
    const hadDevice = removeDevices(socket, encryption === "wireguard" ? wireguard.device : undefined);
    const hadGuard = await removeClearGuards(this.#guard === undefined ? undefined : gateway);
    if (this.#guard === undefined && (hadDevice || hadGuard))
      logger.warn("packets to other nodes' pods are not encrypted any more");
  }

  /**
   * Whether the switch sends past the kernel by one of these. By a pair of interfaces both of which are the node's own
   * (veth) it sends to the kernel.
   * @throws {NetlinkError | CniError}
   */
  async leadPastKernel(interfaces: readonly string[]): Promise<boolean> {
    const { socket } = this.#tools;
    const ends = new Map(
      interfaces.map((name) => {
        const link = findLink(socket, { name });
        const isOwn = link?.kind === "veth" && link.peerIndex !== undefined && link.peerNamespaceId === undefined;
        return [name, isOwn ? findLink(socket, { index: link.peerIndex ?? 0 })?.name : undefined] as const;
      }),
    );
    this.#past = [...ends].flatMap(([name, end]) => (end === undefined ? [name] : []));
    await this.#guard?.useDevices([...this.#devices, ...[...ends.values()].filter((end) => end !== undefined)]);
    return this.#past.length > 0;
  }

  /** What is missing, in sentences; `close` restores rules. */
  async missing(): Promise<readonly string[]> {
    const past = this.#past.map(
      (name) =>
        `the switch sends by "${name}" past the node's kernel, where nothing is encrypted: there is no tunnel, wanted "ovs.datapath: system"`,
    );
    return [...((await this.#guard?.missing()) ?? []), ...past, ...((await this.#ipsec?.problems()) ?? [])];
  }

  /** Nodes whose pods are not reached, and packets that would have been clear, in sentences. */
  async degraded(): Promise<readonly string[]> {
    if (this.#guard === undefined) return [];
    const { sent, received } = this.#guard.dropped();
    return [
      ...((await this.wireguard?.silent()) ?? []),
      ...(this.#ipsec?.silent() ?? []),
      ...(sent === 0 ? [] : [`${sent} packets for other nodes' pods would have left in clear and were dropped`]),
      ...(received === 0
        ? []
        : [`${received} packets of other nodes' pods came in clear and were dropped: a node does not encrypt`]),
    ];
  }

  /** What encrypts goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.wireguard?.[Symbol.asyncDispose]();
    await this.#ipsec?.[Symbol.asyncDispose]();
  }

  get #devices(): readonly string[] {
    const { encryption, wireguard, ipsec } = this.#options;
    if (encryption === "wireguard") return [wireguard.device];
    return ipsec.esp === "userspace" ? [userspaceDevice] : [];
  }
}

/** The networks of all pods. @throws {CniError} 7 where nobody says them */
function networksOf({ podNetworks: networks = [], podSubnets }: Options): readonly Cidr[] {
  if (networks.length === 0)
    throw new CniError(
      CniCode.invalidConfig,
      'Cannot encrypt: nobody says what the networks of all pods are, wanted "ovs.clusterSubnets"',
    );
  const outside = podSubnets.find(({ ip }) => !networks.some((network) => contains(network, ip)));
  if (outside === undefined) return networks;
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot encrypt: this node's pods have ${formatCidr(outside)}, which is in no network that is kept from leaving in clear, wanted "ovs.clusterSubnets" with the networks of all pods, of each family`,
  );
}
