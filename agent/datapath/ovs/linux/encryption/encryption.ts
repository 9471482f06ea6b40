import { CniCode, CniError } from "../../../../../shared/errors.ts";
import { contains, formatCidr } from "../../../../../shared/net/ip.ts";
import type { Kernel, NetlinkSocket } from "../../../../protocols/netlink/mod.ts";
import type { OvsDataPathOptions } from "../../options.ts";
import { packetsOf } from "../../pipeline/mod.ts";
import { ClearGuard, guardTable, removeClearGuard } from "./clear-guard.ts";
import { WireGuard } from "./wireguard.ts";
import { removeDevice } from "./wireguard-link.ts";

type Options = Pick<
  OvsDataPathOptions,
  | "encryption"
  | "wireguard"
  | "gateway"
  | "tunnel"
  | "podNetworks"
  | "podSubnets"
  | "nodeAddresses"
  | "dataDir"
  | "logger"
  | "announce"
>;

interface Tools {
  readonly kernel: Kernel;
  /** In the node's namespace. */
  readonly socket: NetlinkSocket;
  /** The same for packet filters. */
  readonly filters: NetlinkSocket;
}

/**
 * What the node does so that packets between pods of two nodes leave encrypted or not at all. A start puts the rules in
 * that keep clear packets back before it changes anything else; the way back to none takes them out at its end.
 */
export class Encryption implements AsyncDisposable {
  /** Called with what keeps other nodes' pods from being reached. */
  onTrouble: (trouble: string) => void = () => undefined;
  /** Absent where it is not what encrypts. */
  readonly wireguard: WireGuard | undefined;
  readonly #options: Options;
  readonly #tools: Tools;
  readonly #guard: ClearGuard | undefined;

  /**
   * @param mtu bytes
   * @param onLost called when what encrypts has gone by itself
   * @throws {CniError} 7 where nobody says what all pods' networks are
   */
  constructor(options: Options, tools: Tools, mtu: number, onLost: () => void) {
    this.#options = options;
    this.#tools = tools;
    const { encryption, wireguard, gateway, podNetworks: networks = [], podSubnets, tunnel } = options;
    if (encryption === "none") return;
    if (networks.length === 0)
      throw new CniError(
        CniCode.invalidConfig,
        'Cannot encrypt: nobody says what the networks of all pods are, wanted "ovs.clusterSubnets"',
      );
    const outside = podSubnets.find(({ ip }) => !networks.some((network) => contains(network, ip)));
    if (outside !== undefined)
      throw new CniError(
        CniCode.invalidConfig,
        `Cannot encrypt: this node's pods have ${formatCidr(outside)}, which is in no network that is kept from leaving in clear, wanted "ovs.clusterSubnets" with the networks of all pods, of each family`,
      );
    this.#guard = new ClearGuard(tools.filters, {
      gateway,
      device: wireguard.device,
      networks,
      tunnel: packetsOf(tunnel),
    });
    const tell = (trouble: string): void => this.onTrouble(trouble);
    this.wireguard = new WireGuard({ ...options, ...wireguard, ...tools, mtu, onLost, tell });
  }

  /** The table of packet rules that somebody might delete. */
  get table(): string {
    return guardTable(this.#options.gateway).name;
  }

  /** To be called first. @throws {CniError} 102 */
  async close(): Promise<void> {
    await this.#guard?.install();
  }

  /** To be called last: where nothing is to be encrypted, what an earlier agent has left goes. @throws {CniError} 102 */
  async open(): Promise<void> {
    if (this.#guard !== undefined) return;
    const { wireguard, gateway, logger } = this.#options;
    const { socket, filters } = this.#tools;
    const hadDevice = removeDevice(socket, wireguard.device);
    const hadGuard = await removeClearGuard(filters, gateway);
    if (hadDevice || hadGuard) logger.warn("packets to other nodes' pods are not encrypted any more");
  }

  /** Which rules are missing, in sentences; `close` restores them. */
  missing(): readonly string[] {
    return this.#guard?.missing() ?? [];
  }

  /** Nodes whose pods are not reached, and packets that would have been clear, in sentences. */
  async degraded(): Promise<readonly string[]> {
    if (this.#guard === undefined) return [];
    const { sent, received } = this.#guard.dropped();
    return [
      ...((await this.wireguard?.silent()) ?? []),
      ...(sent === 0 ? [] : [`${sent} packets for other nodes' pods would have left in clear and were dropped`]),
      ...(received === 0
        ? []
        : [`${received} packets of other nodes' pods came in clear and were dropped: a node does not encrypt`]),
    ];
  }

  /** What encrypts goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.wireguard?.[Symbol.asyncDispose]();
  }
}
