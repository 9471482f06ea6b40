import { ReconcileLoop } from "../../../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../../../shared/log.ts";
import { type Cidr, formatCidr, formatIp } from "../../../../../shared/net/ip.ts";
import { reasonOf } from "../../../../../shared/reason.ts";
import type { ClusterNode } from "../../../../cluster/node-registry.ts";
import { keepPrivateKey, privateKeyIn, privateKeyMadeMs, restorePrivateKey } from "../../../../cluster/own-key.ts";
import {
  type Kernel,
  type Link,
  listAddresses,
  type NetlinkSocket,
  readAddress,
} from "../../../../protocols/netlink/mod.ts";
import { type DeviceState, newPrivateKey, publicKeyOf } from "../../../../protocols/wireguard/mod.ts";
import { findLink } from "../../../linux/host-links.ts";
import type { WireGuardOptions } from "../../options.ts";
import { HandshakeAges } from "./handshake-ages.ts";
import { HeldInitiations } from "./held-initiations.ts";
import { KeyLife } from "./key-life.ts";
import { LastingTroubles } from "./lasting-troubles.ts";
import {
  greetsSecond,
  idlePeers,
  keepaliveSeconds,
  peerChanges,
  type SilentPeer,
  silentPeers,
  type WantedPeer,
  wantedPeers,
} from "./wanted-peers.ts";
import { type OpenedDevice, openDevice } from "./wireguard-link.ts";

/** How often it looks whether a new key is due, and whether all nodes agree on keys. */
const lookMs = 5_000;
/**
 * How long after another node's key this one does not change its own: what waits for that node would be lost with its
 * former key.
 */
const settleMs = 3_000;
/** After this time a node greets also whom it left to greet first: it may have done so before this one was there. */
const greetSecondMs = 1_000;
/** After a rotation that has failed, or was for the clock's sake: each costs the nodes a handshake. */
const rotateAgainMs = 60_000;

export interface WireGuardNeeds extends WireGuardOptions {
  readonly kernel: Kernel;
  /** In the node's namespace. */
  readonly socket: NetlinkSocket;
  /** Where the node's key lies. */
  readonly dataDir: string;
  readonly podSubnets: readonly Cidr[];
  readonly nodeAddresses: readonly Cidr[];
  /** Bytes. */
  readonly mtu: number;
  /** Interface that leads to the node's own pods. */
  readonly gateway: string;
  /** Tells the registry again what this node says of itself; absent: the node is alone. */
  announce?(): Promise<void>;
  /** People write keys into the registry: this node cannot take another one by itself. */
  readonly keysByHand?: boolean;
  /** Called with what keeps other nodes' pods from being reached; the same sentence again and again while it lasts. */
  tell(trouble: string): void;
  /** Called when the device has gone by itself: `bring` makes it again. */
  onLost(): void;
  readonly logger: Logger;
}

/**
 * The node's end of WireGuard: the device with the node's key, and a peer for each other node, who is believed under the
 * addresses of its own pods alone. Whatever goes wrong here, packets do not leave in clear: that is `ClearGuard`'s.
 */
export class WireGuard implements AsyncDisposable {
  readonly #needs: WireGuardNeeds;
  readonly #loop: ReconcileLoop;
  readonly #ownFamilies: ReadonlySet<number>;
  #opened: OpenedDevice | undefined;
  #wanted: readonly WantedPeer[] = [];
  #strangers: readonly string[] = [];
  /** The node's own at the last time, as one text. */
  #addresses: string | undefined;
  /** The address that the device was told last, by key. */
  #told = new Map<string, string>();
  /** The registry may have a key that this node no longer uses. */
  #mustAnnounce = false;
  /** One after another: what brings the peers, and what changes the key. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #troubles: LastingTroubles;
  #isDisposed = false;
  /** For peers that are not greeted yet. */
  #greeting: ReturnType<typeof setTimeout> | undefined;
  /** When a peer has come, or has got another key. */
  #peersChangedMs = 0;
  /** A new key is not tried before. */
  #rotateFromMs = 0;
  /** Keys of peers that are not wanted and had nothing to carry at the last look. */
  #idle: ReadonlySet<string> = new Set();
  readonly #ages = new HandshakeAges();
  readonly #initiations: HeldInitiations;
  #life: KeyLife | undefined;
  /** By the clock, of the latest handshake of which the key's life has not heard. */
  #handshakeMs = 0;

  constructor(needs: WireGuardNeeds) {
    this.#needs = needs;
    this.#troubles = new LastingTroubles(needs.logger, (trouble) => needs.tell(trouble));
    this.#initiations = new HeldInitiations(needs.gateway, needs.port);
    this.#ownFamilies = new Set(needs.nodeAddresses.map(({ ip }) => ip.family));
    this.#loop = new ReconcileLoop({
      what: "the keys between the nodes",
      reconcile: () => this.#look(),
      logger: needs.logger,
      everyMs: lookMs,
    });
  }

  /** The device, while there is one. */
  get link(): Link | undefined {
    return findLink(this.#needs.socket, { name: this.#needs.device });
  }

  /**
   * Brings the device, its key and its peers to what they should be; repeatable.
   * @returns why nothing goes to nodes that do not encrypt likewise
   * @throws {CniError} where there is no device
   */
  bring(nodes: Iterable<ClusterNode>): Promise<readonly string[]> {
    const all = [...nodes];
    return this.#alone(async () => {
      const { peers, strangers } = wantedPeers(all, this.#ownFamilies);
      const privateKey = privateKeyIn(this.#needs.dataDir);
      const own = publicKeyOf(privateKey);
      const known = this.#wanted;
      this.#wanted = peers.filter(({ key }) => key !== own);
      const impostors = peers.filter(({ key }) => key === own);
      this.#strangers = [
        ...strangers,
        ...impostors.map(({ node }) => `nothing goes to the pods of node "${node}": its public key is this node's own`),
      ];
      const { device } = await this.#open();
      const { port } = this.#needs;
      const state = await device.read();
      this.#life ??= new KeyLife(this.#needs.dataDir, this.#needs.rotateHours);
      this.#notice(state);
      const addresses = this.#nodeAddresses();
      const again = this.#addresses !== undefined && this.#addresses !== addresses;
      // Somebody has deleted the key's file, and a new one was made.
      if (state.publicKey !== undefined && state.publicKey !== own) this.#mustAnnounce = true;
      const greetsLater = (peer: WantedPeer): boolean => greetsSecond(own, peer, known);
      const changes = peerChanges(state, this.#wanted, port, this.#told, greetsLater, again);
      await device.change({
        ...(state.publicKey === own ? {} : { privateKey }),
        ...(state.listenPort === port ? {} : { listenPort: port }),
        peers: changes,
      });
      const standing = new Map(state.peers.map((peer) => [peer.publicKey, peer]));
      if (this.#wanted.some(({ key }) => !standing.has(key))) this.#peersChangedMs = performance.now();
      // An agent that was killed may have left some that stand.
      const isUngreeted = this.#wanted.some((peer) => {
        const is = standing.get(peer.key);
        return is === undefined ? greetsLater(peer) : is.keepaliveSeconds === 0;
      });
      if (isUngreeted) this.#greetSoon();
      this.#addresses = addresses;
      this.#told = new Map(this.#wanted.map(({ key, ip }) => [key, formatIp(ip)]));
      return this.#strangers;
    });
  }

  /** With whom there are no common keys now, in sentences; reads the device. */
  async silent(): Promise<readonly string[]> {
    return (await this.#silent()).map(({ is, since }) => (since === "" ? is : `${is} (the last time: ${since})`));
  }

  /** The device goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    clearTimeout(this.#greeting);
    await this.#loop[Symbol.asyncDispose]();
    await this.#last;
    this.#opened?.[Symbol.dispose]();
    this.#opened = undefined;
  }

  /** As it stands if it still does, else a new one. */
  async #open(): Promise<OpenedDevice> {
    const { link } = this;
    const { mtu } = this.#needs;
    if (this.#opened !== undefined && link?.index === this.#opened.link.index && link.up && link.mtu === mtu)
      return this.#opened;
    this.#opened?.[Symbol.dispose]();
    const opened = await openDevice({ ...this.#needs, name: this.#needs.device }, () => this.#lost());
    this.#opened = opened;
    // A new device knows nobody.
    if (link === undefined) this.#told.clear();
    if (!opened.isKernel && link === undefined)
      this.#needs.logger.info("the kernel has no WireGuard: a daemon encrypts", { device: this.#needs.device });
    return opened;
  }

  #nodeAddresses(): string {
    const all = this.#needs.socket.dump(listAddresses(0), readAddress);
    return all
      .map(({ address }) => formatCidr(address))
      .sort()
      .join();
  }

  #lost(): void {
    if (this.#isDisposed) return;
    this.#opened = undefined;
    this.#needs.logger.error("what encrypts has ended, and is started again; nothing leaves meanwhile", {
      device: this.#needs.device,
    });
    this.#needs.onLost();
  }

  #notice(state: DeviceState): void {
    this.#handshakeMs = Math.max(this.#handshakeMs, this.#ages.look(state, Date.now(), performance.now()));
  }

  async #silent(): Promise<readonly SilentPeer[]> {
    const { device, port } = this.#needs;
    if (this.#opened === undefined)
      return [{ is: `the device "${device}" is missing: nothing goes to other nodes' pods`, since: "" }];
    try {
      this.#notice(await this.#opened.device.read());
      const now = performance.now();
      return silentPeers(this.#wanted, (key) => this.#ages.of(key, now), port, this.#life?.behind);
    } catch (caught) {
      return [{ is: reasonOf(caught), since: "" }];
    }
  }

  async #look(): Promise<undefined> {
    if (this.#opened === undefined || this.#life === undefined) return undefined;
    this.#troubles.look([...this.#strangers, ...(await this.#silent()).map(({ is }) => is)]);
    await this.#alone(() => this.#removeIdle());
    const { announce, keysByHand } = this.#needs;
    if (this.#mustAnnounce && announce !== undefined) {
      await announce();
      this.#mustAnnounce = false;
    }
    const now = performance.now();
    const due = this.#life.look(Date.now(), now, this.#handshakeMs);
    this.#handshakeMs = 0;
    if (due === undefined || announce === undefined || keysByHand) return undefined;
    if (now - this.#peersChangedMs <= settleMs || now < this.#rotateFromMs) return undefined;
    if (due === "clock") {
      this.#rotateFromMs = now + rotateAgainMs;
      this.#needs.logger.warn("the clock was set back: others do not take handshakes of this node's key until then", {
        until: this.#life.behind?.toISOString(),
      });
    }
    await this.#alone(() => this.#rotate(announce));
    this.#life.renewed(Date.now(), performance.now());
    return undefined;
  }

  #greetSoon(): void {
    if (this.#isDisposed) return;
    this.#greeting ??= setTimeout(() => {
      this.#greeting = undefined;
      this.#alone(() => this.#greetRest()).catch(() => this.#greetSoon());
    }, greetSecondMs);
  }

  /** The device tells whom it greets; others than those that it has would become peers. */
  async #greetRest(): Promise<void> {
    const device = this.#opened?.device;
    if (device === undefined) return;
    const wanted = new Set(this.#wanted.map(({ key }) => key));
    const { peers } = await device.read();
    const rest = peers.filter((peer) => peer.keepaliveSeconds === 0 && wanted.has(peer.publicKey));
    await device.change({ peers: rest.map(({ publicKey }) => ({ publicKey, keepaliveSeconds })) });
  }

  /** Not before the second look: what was read for them is on its way by then. */
  async #removeIdle(): Promise<void> {
    const device = this.#opened?.device;
    if (device === undefined) return;
    const idle = idlePeers(await device.read(), this.#wanted);
    const gone = idle.filter((publicKey) => this.#idle.has(publicKey));
    if (gone.length > 0) await device.change({ peers: gone.map((publicKey) => ({ publicKey, remove: true })) });
    this.#idle = new Set(idle.filter((publicKey) => !gone.includes(publicKey)));
  }

  /**
   * Takes a new key. First the device has it: what goes to others waits there (128 packets for each), and what comes with
   * the keys of before is still read. When the registry tells it, each of the others greets at once and gets what
   * waited; until then this node greets nobody. Where the registry does not take it, the key of before is used again.
   */
  async #rotate(announce: () => Promise<void>): Promise<void> {
    const { dataDir, logger } = this.#needs;
    const { device } = await this.#open();
    // A registry that is away would leave the node between two keys.
    await announce();
    const [old, next] = [privateKeyIn(dataDir), newPrivateKey()];
    const madeMs = privateKeyMadeMs(dataDir);
    await this.#initiations.hold();
    keepPrivateKey(dataDir, next);
    try {
      await device.change({ privateKey: next });
      await announce();
      logger.info("this node has a new key", { publicKey: publicKeyOf(next) });
    } catch (caught) {
      restorePrivateKey(dataDir, old, madeMs);
      this.#rotateFromMs = performance.now() + rotateAgainMs;
      this.#mustAnnounce = true;
      // Where that fails it is over in five seconds.
      await this.#initiations.release().catch(() => undefined);
      await device.change({ privateKey: old });
      throw caught;
    }
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
