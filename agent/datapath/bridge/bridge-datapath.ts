import type { CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Cidr, Ip } from "../../../shared/ip.ts";
import {
  Kernel,
  type Link,
  listAddresses,
  type NetlinkSocket,
  readAddress,
  setHairpin,
  setLink,
} from "../../netlink/mod.ts";
import type { Attached, AttachRequest, DataPath, Problem } from "../datapath.ts";
import { type Alias, parseAlias } from "./alias.ts";
import { compareHostEnd, comparePodEnd, differs } from "./compare.ts";
import { ensureBridge, familiesNotForwarded, missingFromBridge, turnOnForwarding } from "./gateway-bridge.ts";
import { allLinks, findHostLink, linkGroup, linkOrNone, retire } from "./host-links.ts";
import { interfaceError } from "./kernel-errors.ts";
import { installMasquerade } from "./masquerade.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";
import { isOfNetwork, planOf } from "./plan.ts";
import { PodEnd } from "./pod-end.ts";
import { openSandbox } from "./sandbox.ts";
import { Sweeper } from "./sweeper.ts";
import { leadsInto, type WiringTools, wire } from "./wiring.ts";

/**
 * Opens the data path in the calling thread's network namespace; `start()` prepares the node.
 * @throws {CniError} code 7 where the options contradict themselves, 102 where the kernel refuses a socket
 */
export function createBridgeDataPath(options: BridgeDataPathOptions): DataPath {
  const { networks } = options;
  for (const key of ["name", "bridge"] as const) {
    const twice = networks.find((network, i) => networks.findIndex((other) => other[key] === network[key]) !== i);
    if (twice !== undefined) {
      throw new CniError(
        CniCode.invalidConfig,
        `Cannot set up the networks: ${key} "${twice[key]}" is there twice, wanted each once`,
      );
    }
  }
  try {
    return new BridgeDataPath(options);
  } catch (caught) {
    throw interfaceError("open the bridge data path", caught);
  }
}

interface Attachment {
  readonly alias: Alias;
  readonly link: Link;
}

/**
 * Almost everything here is done in the caller's turn: a pod is wired by three system calls that last half a
 * millisecond together. Only what waits for the kernel's deletions is spread over turns.
 */
class BridgeDataPath implements DataPath {
  readonly #networks: ReadonlyMap<string, BridgeNetwork>;
  readonly #tools: WiringTools;
  readonly #socket: NetlinkSocket;
  readonly #resources = new DisposableStack();

  constructor({ networks, logger }: BridgeDataPathOptions) {
    this.#networks = new Map(networks.map((network) => [network.name, network]));
    const kernel = this.#resources.use(new Kernel());
    this.#socket = this.#resources.use(kernel.openSocket());
    const sweeper = new Sweeper(this.#resources.use(kernel.openSocket()), linkGroup.leaving, logger);
    this.#tools = { kernel, socket: this.#socket, sweeper, logger };
  }

  async start(): Promise<void> {
    const networks = [...this.#networks.values()];
    try {
      const bridges = networks.map((network) => this.#bridgeOf(network));
      networks.forEach((network, i) => {
        const bridge = bridges[i];
        if (bridge !== undefined) this.#restorePorts(network, bridge);
      });
      this.#removeHalfMade(bridges);
    } catch (caught) {
      throw interfaceError("prepare the bridges", caught);
    }
    turnOnForwarding(networks);
    await installMasquerade(networks);
    await this.#tools.sweeper.sweep();
  }

  async attach(request: AttachRequest): Promise<CniResult> {
    const { owner } = request;
    const action = `attach "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const plan = planOf(this.#networkOf(owner, action), request);
    using namespace = openSandbox(this.#tools.kernel, request.container.netns);
    try {
      return await wire(this.#tools, plan, namespace, this.#bridgeFor(plan.network));
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async detach(owner: Owner): Promise<void> {
    try {
      const link = findHostLink(this.#socket, owner);
      if (link === undefined) return;
      retire(this.#socket, link);
    } catch (caught) {
      throw interfaceError(`detach "${owner.ifname}" of sandbox "${owner.sandboxId}"`, caught);
    }
    void this.#tools.sweeper.sweep();
  }

  async check(owner: Owner, netns: string, prevResult: CniResult): Promise<void> {
    const action = `check "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const network = this.#networkOf(owner, action);
    using namespace = openSandbox(this.#tools.kernel, netns);
    try {
      const host = findHostLink(this.#socket, owner);
      if (host === undefined || host.group === linkGroup.leaving) {
        throw differs(`the attachment of "${owner.ifname}"`, "missing on the node", "an interface of ours");
      }
      const bridge = linkOrNone(this.#socket, { name: network.bridge });
      if (bridge === undefined) throw differs(`the bridge "${network.bridge}"`, "missing", "on the node");
      compareHostEnd(host, bridge);
      if (!leadsInto(this.#socket, host, namespace)) {
        throw differs(`the other end of "${host.name}"`, "in another namespace", `in "${netns}"`);
      }
      using pod = new PodEnd(this.#tools.kernel, namespace);
      comparePodEnd(pod, owner.ifname, host, prevResult);
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async list(): Promise<readonly Attached[]> {
    try {
      return this.#attachments().map(({ alias, link }) => ({ ...alias, hostIfname: link.name }));
    } catch (caught) {
      throw interfaceError("list the attached interfaces", caught);
    }
  }

  async addresses(owner: Owner): Promise<readonly Cidr[]> {
    const action = `read the addresses of "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const network = this.#networkOf(owner, action);
    try {
      const { peerIndex, peerNamespaceId } = findHostLink(this.#socket, owner) ?? {};
      if (peerIndex === undefined || peerNamespaceId === undefined) return [];
      return this.#socket
        .dump(listAddresses(peerIndex, peerNamespaceId), readAddress)
        .filter(({ index, address }) => index === peerIndex && isOfNetwork(network, address.ip))
        .map(({ address }) => address);
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  /** Nobody else puts addresses of a bridge's subnet onto it. */
  held(): readonly Ip[] {
    return [];
  }

  async problems(): Promise<readonly Problem[]> {
    try {
      return this.#findProblems();
    } catch (caught) {
      throw interfaceError("look for problems", caught);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#resources.disposed) return;
    await this.#tools.sweeper.sweep();
    this.#resources.dispose();
  }

  /** For one more pod: nothing is looked at twice while the bridge stands; `problems` tells what else it lacks. */
  #bridgeFor(network: BridgeNetwork): Link {
    const standing = linkOrNone(this.#socket, { name: network.bridge });
    return standing?.kind === "bridge" && standing.up ? standing : this.#bridgeOf(network);
  }

  /** The network's bridge; one that had to be made gets its ports back. */
  #bridgeOf(network: BridgeNetwork): Link {
    const { link: bridge, created } = ensureBridge(this.#socket, network);
    if (created) this.#restorePorts(network, bridge);
    return bridge;
  }

  #restorePorts(network: BridgeNetwork, bridge: Link): void {
    const { hairpin } = network;
    for (const { link } of this.#attachments((name) => name === network.name)) {
      if (link.up && link.master === bridge.index && link.hairpin === hairpin) continue;
      const refusals = this.#socket.batch([
        setLink(link.name, link.index, { up: true, master: bridge.index }),
        setHairpin(link.name, link.index, hairpin),
      ]);
      const refusal = refusals.find((one) => one !== undefined);
      if (refusal === undefined) continue;
      // The others shall have their network all the same; CHECK names this one.
      this.#tools.logger.error("cannot put a pod back on its bridge", { error: refusal.message });
    }
  }

  /** Removes what a killed agent was about to make on our bridges: pairs without owner. */
  #removeHalfMade(bridges: readonly Link[]): void {
    for (const link of allLinks(this.#socket)) {
      const isOurs = link.master === 0 || bridges.some((bridge) => bridge.index === link.master);
      if (link.group === linkGroup.arriving && isOurs) retire(this.#socket, link);
    }
  }

  /** Host's ends of our networks that are in service or should be. */
  #attachments(isWanted = (network: string): boolean => this.#networks.has(network)): readonly Attachment[] {
    const found: Attachment[] = [];
    for (const link of allLinks(this.#socket)) {
      const alias = link.group === linkGroup.leaving ? undefined : parseAlias(link.alias);
      if (alias !== undefined && isWanted(alias.owner.network)) found.push({ alias, link });
    }
    return found;
  }

  #findProblems(): Problem[] {
    const networks = [...this.#networks.values()];
    const attachments = this.#attachments();
    const problems = networks.flatMap((network) => {
      const hasPods = attachments.some(({ alias }) => alias.owner.network === network.name);
      return missingFromBridge(this.#socket, network).map((message) => problem(hasPods, message));
    });
    for (const family of familiesNotForwarded(networks)) {
      problems.push(problem(attachments.length > 0, `IPv${family} forwarding is off on the node`));
    }
    return problems;
  }

  #networkOf(owner: Owner, action: string): BridgeNetwork {
    const network = this.#networks.get(owner.network);
    if (network !== undefined) return network;
    const known = [...this.#networks.keys()].map((name) => `"${name}"`).join(", ");
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot ${action}: the agent has no network "${owner.network}", wanted one of ${known === "" ? "none" : known}`,
    );
  }
}

const problem = (hasPods: boolean, message: string): Problem => ({ code: hasPods ? 51 : 50, message });
