import type { CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Cidr, Ip } from "../../../shared/ip.ts";
import { type Link, setHairpin, setLink } from "../../netlink/mod.ts";
import type { Attached, AttachRequest, DataPath, Problem } from "../datapath.ts";
import { familiesNotForwarded, turnOnForwarding } from "../host/forwarding.ts";
import { installPacketRules, missingPacketRules } from "../host/packet-rules.ts";
import { differs } from "../veth/compare.ts";
import { linkOrNone } from "../veth/host-links.ts";
import { interfaceError } from "../veth/kernel-errors.ts";
import { planOf } from "../veth/plan.ts";
import { type Attachment, PodPairs } from "../veth/pod-pairs.ts";
import { openSandbox } from "../veth/sandbox.ts";
import { wire } from "../veth/wiring.ts";
import { bridgeSide } from "./bridge-side.ts";
import { compareHostEnd } from "./compare.ts";
import { ensureBridge, missingFromBridge } from "./gateway-bridge.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";

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
  readonly #pairs: PodPairs;
  /** What pods are not kept from, where the node has no packet rules. */
  #unguarded: string | undefined;

  constructor({ networks, logger }: BridgeDataPathOptions) {
    this.#networks = new Map(networks.map((network) => [network.name, network]));
    this.#pairs = new PodPairs(logger);
  }

  async start(): Promise<void> {
    const networks = [...this.#networks.values()];
    try {
      const bridges = networks.map((network) => this.#bridgeOf(network));
      networks.forEach((network, i) => {
        const bridge = bridges[i];
        if (bridge !== undefined) this.#restorePorts(network, bridge);
      });
      this.#pairs.retireHalfMade(bridges.map(({ index }) => index));
    } catch (caught) {
      throw interfaceError("prepare the bridges", caught);
    }
    turnOnForwarding(networks);
    this.#unguarded = await installPacketRules(networks);
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
      return await wire(tools, plan, namespace, bridgeSide(this.#bridgeFor(network), network.hairpin));
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async detach(owner: Owner): Promise<void> {
    try {
      this.#pairs.retire(owner);
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
    return this.#unguarded === undefined ? [] : [this.#unguarded];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pairs[Symbol.asyncDispose]();
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
    for (const { link } of this.#attachments((name) => name === network.name)) {
      if (link.up && link.master === bridge.index && link.hairpin === hairpin) continue;
      const refusals = socket.batch([
        setLink(link.name, link.index, { up: true, master: bridge.index }),
        setHairpin(link.name, link.index, hairpin),
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
      return missingFromBridge(this.#pairs.tools.socket, network).map((message) => problem(hasPods, message));
    });
    for (const family of familiesNotForwarded(networks)) {
      problems.push(problem(attachments.length > 0, `IPv${family} forwarding is off on the node`));
    }
    const guarded = this.#unguarded === undefined ? networks : [];
    for (const message of missingPacketRules(this.#pairs.tools.kernel, guarded))
      problems.push(problem(attachments.length > 0, message));
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
