import type { CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Cidr, Ip } from "../../../shared/ip.ts";
import { type Link, setLink } from "../../netlink/mod.ts";
import type { Attached, AttachRequest, DataPath, Problem } from "../datapath.ts";
import { familiesNotForwarded, turnOnForwarding } from "../host/forwarding.ts";
import { installMasquerade, missingMasquerade } from "../host/masquerade.ts";
import { routersHeard } from "../host/sysctl.ts";
import { differs } from "../veth/compare.ts";
import { linkOrNone } from "../veth/host-links.ts";
import type { HostSide } from "../veth/host-side.ts";
import { interfaceError } from "../veth/kernel-errors.ts";
import { planOf } from "../veth/plan.ts";
import { type Attachment, PodPairs } from "../veth/pod-pairs.ts";
import { openSandbox } from "../veth/sandbox.ts";
import { wire } from "../veth/wiring.ts";
import { bridgeSide, isPodPort, podPort } from "./bridge-side.ts";
import { compareHostEnd } from "./compare.ts";
import { ensureBridge, missingFromBridge } from "./gateway-bridge.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";
import { PortGuard } from "./port-guard.ts";
import { declaredMacs, standingPods } from "./standing-pods.ts";

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

/**
 * Almost everything here is done in the caller's turn: a pod is wired by three system calls that last half a
 * millisecond together. Only what waits for the kernel's deletions is spread over turns.
 */
class BridgeDataPath implements DataPath {
  readonly #networks: ReadonlyMap<string, BridgeNetwork>;
  readonly #leasedTo: BridgeDataPathOptions["leasedTo"];
  readonly #resources = new AsyncDisposableStack();
  readonly #pairs: PodPairs;
  /** By the networks' names. */
  readonly #guards: ReadonlyMap<string, PortGuard>;

  constructor({ networks, leasedTo, logger }: BridgeDataPathOptions) {
    this.#networks = new Map(networks.map((network) => [network.name, network]));
    this.#leasedTo = leasedTo;
    this.#pairs = this.#resources.use(new PodPairs(logger));
    const { kernel, socket } = this.#pairs.tools;
    const filters = this.#resources.use(kernel.openPacketFilterSocket());
    const isStanding = (index: number): boolean => linkOrNone(socket, { index }) !== undefined;
    this.#guards = new Map(networks.map((network) => [network.name, new PortGuard(filters, network, isStanding)]));
  }

  async start(): Promise<void> {
    const networks = [...this.#networks.values()];
    try {
      const bridges = networks.map((network) => this.#bridgeOf(network));
      this.#pairs.retireHalfMade(bridges.map(({ index }) => index));
      networks.forEach((network, i) => {
        const bridge = bridges[i];
        if (bridge === undefined) return;
        this.#guardPods(network, bridge);
        this.#restorePorts(network, bridge);
      });
    } catch (caught) {
      throw interfaceError("prepare the bridges", caught);
    }
    turnOnForwarding(networks);
    await installMasquerade(networks);
    this.#orLog("tell the node which addresses are pods'", () => {
      for (const guard of this.#guards.values()) guard.announce();
    });
    await this.#pairs.tools.sweeper.sweep();
  }

  async attach(request: AttachRequest): Promise<CniResult> {
    const { owner } = request;
    const action = `attach "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const network = this.#networkOf(owner, action);
    const plan = planOf(network, request);
    const { tools } = this.#pairs;
    using namespace = openSandbox(tools.kernel, request.container.netns);
    try {
      return await wire(tools, plan, namespace, this.#sideOf(network));
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async detach(owner: Owner): Promise<void> {
    try {
      const link = this.#pairs.retire(owner);
      const guard = this.#guards.get(owner.network);
      const port = link?.index ?? guard?.portOf(owner);
      // Elements that stay name a port that is down or gone: nobody can use them.
      if (port !== undefined) this.#orLog("forget a pod's port", () => guard?.dismiss(port));
    } catch (caught) {
      throw interfaceError(`detach "${owner.ifname}" of sandbox "${owner.sandboxId}"`, caught);
    }
  }

  async check(owner: Owner, netns: string, prevResult: CniResult): Promise<void> {
    const action = `check "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const network = this.#networkOf(owner, action);
    try {
      this.#pairs.check(owner, netns, prevResult, (host) => {
        const bridge = linkOrNone(this.#pairs.tools.socket, { name: network.bridge });
        if (bridge === undefined) throw differs(`the bridge "${network.bridge}"`, "missing", "on the node");
        compareHostEnd(host, bridge);
        this.#compareGuard(network, bridge, host);
      });
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
      return this.#pairs.addresses(owner, network);
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

  async shortcomings(): Promise<readonly string[]> {
    return [...this.#networks.values()].flatMap(({ bridge }) => routersHeard(bridge));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  #sideOf(network: BridgeNetwork): HostSide {
    return bridgeSide(this.#bridgeFor(network), network.hairpin, this.#guardOf(network));
  }

  #guardOf({ name }: BridgeNetwork): PortGuard {
    const guard = this.#guards.get(name);
    if (guard === undefined) throw new Error(`Broken invariant: the network "${name}" has no guard`);
    return guard;
  }

  /** Before ports are let up: what may come in by them. Without that no pod is attached, and `problems` tells why. */
  #guardPods(network: BridgeNetwork, bridge: Link): void {
    const guard = this.#guardOf(network);
    this.#orLog(`set up the packet rules of the bridge "${bridge.name}"`, () => {
      guard.guard(standingPods(this.#pairs, guard, network, bridge, this.#leasedTo));
    });
  }

  /** The rest shall go on all the same. */
  #orLog(action: string, work: () => void): void {
    try {
      work();
    } catch (caught) {
      const { message } = interfaceError(action, caught);
      this.#pairs.tools.logger.error(message);
    }
  }

  /** For one more pod: nothing is looked at twice while the bridge stands; `problems` tells what else it lacks. */
  #bridgeFor(network: BridgeNetwork): Link {
    const standing = linkOrNone(this.#pairs.tools.socket, { name: network.bridge });
    return standing?.kind === "bridge" && standing.up ? standing : this.#bridgeOf(network);
  }

  /** The network's bridge; one that had to be made gets its ports back. */
  #bridgeOf(network: BridgeNetwork): Link {
    const { link: bridge, created } = ensureBridge(this.#pairs.tools.socket, network);
    if (created) this.#restorePorts(network, bridge);
    return bridge;
  }

  #restorePorts(network: BridgeNetwork, bridge: Link): void {
    const { hairpin } = network;
    const { socket, logger } = this.#pairs.tools;
    const guard = this.#guardOf(network);
    const declared = declaredMacs(this.#pairs, bridge);
    for (const { link } of this.#attachments((name) => name === network.name)) {
      const { name, index } = link;
      const mac = guard.at(index)?.mac;
      if (link.up && isPodPort(link, bridge, hairpin) && declared.get(index) === mac) continue;
      const refusals = socket.batch([
        setLink(name, index, { master: bridge.index }),
        ...(mac === undefined ? [] : podPort(link, mac, hairpin)),
        setLink(name, index, { up: true }),
      ]);
      const refusal = refusals.find((one) => one !== undefined);
      if (refusal === undefined) continue;
      // The others shall have their network all the same; CHECK names this one.
      logger.error("cannot put a pod back on its bridge", { error: refusal.message });
    }
  }

  #attachments(isWanted = (network: string): boolean => this.#networks.has(network)): readonly Attachment[] {
    return this.#pairs.attachments(isWanted);
  }

  #findProblems(): Problem[] {
    const networks = [...this.#networks.values()];
    const attachments = this.#attachments();
    const problems = networks.flatMap((network) => {
      const hasPods = attachments.some(({ alias }) => alias.owner.network === network.name);
      const missing = [...missingFromBridge(this.#pairs.tools.socket, network), ...this.#unguarded(network)];
      return missing.map((message) => problem(hasPods, message));
    });
    for (const family of familiesNotForwarded(networks)) {
      problems.push(problem(attachments.length > 0, `IPv${family} forwarding is off on the node`));
    }
    for (const message of missingMasquerade(this.#pairs.tools.kernel, networks))
      problems.push(problem(attachments.length > 0, message));
    return problems;
  }

  /** What of a network's packet rules and declared MACs is missing now, in sentences. */
  #unguarded(network: BridgeNetwork): readonly string[] {
    const guard = this.#guardOf(network);
    const missing = guard.missing();
    const bridge = linkOrNone(this.#pairs.tools.socket, { name: network.bridge });
    if (bridge === undefined) return missing;
    const declared = declaredMacs(this.#pairs, bridge);
    const ports = this.#attachments((name) => name === network.name).filter(({ link }) => {
      const mac = guard.at(link.index)?.mac;
      return mac === undefined || declared.get(link.index) !== mac;
    });
    if (ports.length === 0) return missing;
    return [
      ...missing,
      `${ports.length} ports of the bridge "${network.bridge}" are without their pods' hardware addresses`,
    ];
  }

  #compareGuard(network: BridgeNetwork, bridge: Link, { name, index }: Link): void {
    const pod = this.#guardOf(network).guardedAt(index);
    if (pod === undefined) throw differs(`the packet rules about "${name}"`, "not whole", "as ADD made them");
    if (declaredMacs(this.#pairs, bridge).get(index) === pod.mac) return;
    throw differs(`the pod's hardware address at the port "${name}"`, "missing", `"${pod.mac}" declared on the bridge`);
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
