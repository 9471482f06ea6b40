import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import { otherwiseEncrypted } from "../../cluster/node-encryption.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import { bringCertificate } from "./database/node-certificate.ts";
import { bringPeerPorts, type PeerPort, type StandingPeer } from "./database/peer-ports.ts";
import type { SwitchDatabase } from "./database/switch-database.ts";
import type { IpsecCredentials, OvsNodeOptions } from "./options.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { Category } from "./pipeline/cookie.ts";
import { peerTunnelFlows, tunnelEndOf } from "./pipeline/mod.ts";
import { AppliedRecord } from "./program/applied-record.ts";
import type { SwitchProgram } from "./program/flow-set.ts";

/** Another node, as IPsec is to reach it. */
export interface PeerTunnel {
  readonly node: string;
  readonly remote: Ip;
}

/**
 * With IPsec a tunnel of its own to each node that encrypts likewise, in the database and in the switch's flows. Packets
 * go to a node only while there is one, and are believed only out of one.
 */
export class PeerTunnels {
  readonly #db: SwitchDatabase;
  readonly #options: OvsNodeOptions;
  readonly #credentials: IpsecCredentials;
  /** Numbers of ports that the program has flows for, by node. */
  readonly #flows = new AppliedRecord<number>();
  #standing: ReadonlyMap<string, StandingPeer> = new Map();
  #wanted: readonly PeerPort[] = [];
  #strangers: readonly string[] = [];

  constructor(db: SwitchDatabase, options: OvsNodeOptions, credentials: IpsecCredentials) {
    this.#db = db;
    this.#options = options;
    this.#credentials = credentials;
  }

  /** To whom nothing goes, and why, in sentences. */
  get unreached(): readonly string[] {
    const failed = [...this.#standing].flatMap(([node, { name, error }]) =>
      error === undefined
        ? []
        : [`nothing goes to the pods of node "${node}": its tunnel "${name}" is not there (${error})`],
    );
    const { problem, isThere } = this.#own();
    const own = isThere ? problem : `nothing goes to other nodes' pods: ${problem}`;
    return [...(problem === undefined ? [] : [own ?? ""]), ...this.#strangers, ...failed];
  }

  /** Those that are to be there, by the names of their ports, which are in strongSwan's connections. */
  get byPort(): ReadonlyMap<string, PeerTunnel> {
    const ports = this.#wanted.map((port) => [this.#standing.get(port.node)?.name ?? "", port] as const);
    return new Map(ports.filter(([name]) => name !== ""));
  }

  /** Whether a port of this name is one of them. */
  has(port: string): boolean {
    return [...this.#standing.values()].some(({ name }) => name === port);
  }

  /** The program has other parameters now. */
  markDirty(): void {
    this.#flows.markDirty();
  }

  /**
   * Brings them to what they should be; repeatable.
   * @param nodes `undefined`: nobody has said yet which there are; then those of before stay
   * @returns the nodes to which packets may go
   * @throws {OvsdbError} where the database cannot be asked
   * @throws {CniError} where the switch does not take the flows
   */
  async bring(
    program: SwitchProgram,
    context: PipelineContext,
    nodes: ReadonlyMap<string, ClusterNode> | undefined,
  ): Promise<ReadonlyMap<string, ClusterNode>> {
    if (nodes === undefined) return new Map();
    this.#choose(context, nodes);
    const psk = await this.#bringCredentials();
    const { bridge, tunnel, ipsec } = this.#options;
    const how = { tunnel, ipsec, ...(psk === undefined ? {} : { psk }) };
    this.#standing = await bringPeerPorts(this.#db, bridge, this.#wanted, how);
    const reached = [...this.#standing].flatMap(([node, { ofport }]) =>
      ofport === undefined ? [] : [[node, ofport] as const],
    );
    await this.#setFlows(program, context, new Map(reached));
    return new Map([...nodes].filter(([name]) => this.#standing.get(name)?.ofport !== undefined));
  }

  #choose(context: PipelineContext, nodes: ReadonlyMap<string, ClusterNode>): void {
    const wanted: PeerPort[] = [];
    const strangers: string[] = [];
    const owners = new Map<string, string>();
    const { isThere } = this.#own();
    for (const [node, peer] of context.tunnel === undefined || !isThere ? [] : nodes) {
      const remote = tunnelEndOf(context, peer);
      const owner = remote === undefined ? undefined : owners.get(formatIp(remote));
      const why =
        otherwiseEncrypted(peer.encryption, "ipsec") ??
        (remote === undefined ? "it has no address of a family that this node has" : undefined) ??
        (owner === undefined ? undefined : `its address is that of node "${owner}" too`);
      if (why !== undefined) strangers.push(`nothing goes to the pods of node "${node}": ${why}`);
      else if (remote !== undefined) {
        wanted.push({ node, remote });
        owners.set(formatIp(remote), node);
      }
    }
    this.#wanted = wanted;
    this.#strangers = strangers;
  }

  /** Whether the node can show anything yet, and what is wrong with it. */
  #own(): { readonly problem: string | undefined; readonly isThere: boolean } {
    if (this.#credentials.kind === "psk") return { problem: undefined, isThere: true };
    const { source } = this.#credentials;
    const isThere = source.current() !== undefined;
    return { isThere, problem: source.problem() ?? (isThere ? undefined : "this node has no certificate yet") };
  }

  /** @returns the secret, where that is what nodes show */
  async #bringCredentials(): Promise<string | undefined> {
    if (this.#credentials.kind === "psk") {
      await bringCertificate(this.#db, undefined);
      return this.#credentials.secret;
    }
    await bringCertificate(this.#db, this.#credentials.source.current());
    return undefined;
  }

  async #setFlows(
    program: SwitchProgram,
    context: PipelineContext,
    ofports: ReadonlyMap<string, number>,
  ): Promise<void> {
    const gone = [...this.#flows.entries()].map(([key]) => key).filter((key) => !ofports.has(nodeOf(key)));
    const changed = [...ofports].filter(([node, ofport]) => !this.#flows.isApplied(keyOf(node), (is) => is === ofport));
    if (gone.length + changed.length === 0) return;
    for (const [node, ofport] of changed) this.#flows.set(keyOf(node), ofport);
    try {
      await program.set(
        new Map([
          ...gone.map((key) => [key, undefined] as const),
          ...changed.map(
            ([node, ofport]) =>
              [keyOf(node), { category: Category.node, flows: peerTunnelFlows(context, ofport) }] as const,
          ),
        ]),
      );
      for (const key of gone) this.#flows.delete(key);
    } catch (caught) {
      this.#flows.markDirty([...gone, ...changed.map(([node]) => keyOf(node))]);
      throw caught;
    }
  }
}

const prefix = "tunnel/";
const keyOf = (node: string): string => `${prefix}${node}`;
const nodeOf = (key: string): string => key.slice(prefix.length);
