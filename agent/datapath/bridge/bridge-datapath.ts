import type { CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, formatCidr, type Ip, sameIp } from "../../../shared/net/ip.ts";
import { parseMac } from "../../../shared/net/mac.ts";
import { type Link, listAddresses, readAddress } from "../../protocols/netlink/mod.ts";
import type { Attached, AttachRequest, DataPath, Problem } from "../datapath.ts";
import { mismatch } from "../linux/compare.ts";
import { kernelNearlyFull } from "../linux/conntrack-usage.ts";
import { findAgain, findLink } from "../linux/host-links.ts";
import { interfaceError } from "../linux/kernel-errors.ts";
import { kubeProxyBeside } from "../linux/kube-proxy.ts";
import { removeNodeRoutes } from "../linux/node-routes.ts";
import { forwardingProblems, ignoreRouters, routersAccepted, turnOnForwarding } from "../linux/node-sysctls.ts";
import { type ForwardedNetwork, installPacketRules, missingPacketRules, packetTable } from "../linux/packet-rules.ts";
import { defaultMtu, planOf } from "../linux/plan.ts";
import { openSandbox } from "../linux/pod-end.ts";
import { type Attachment, PodPairs } from "../linux/pod-pairs.ts";

import { watchNode } from "../linux/watch-node.ts";
import { wire } from "../linux/wiring.ts";
import { ensureBridge, missingFromBridge } from "./gateway-bridge.ts";
import { GuardedPorts } from "./guarded-ports.ts";
import { compareHostEnd } from "./host-port.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";
import { OtherNodes } from "./other-nodes.ts";
import { BridgePolicies, policyTable } from "./policies/bridge-policies.ts";
import type { PolicedBridge } from "./policies/node-chains.ts";
import { BridgeServices } from "./services/bridge-services.ts";
import { serviceTable } from "./services/service-sets.ts";
import { endStaleConnections } from "./services/stale-connections.ts";

/**
 * Opens the data path in the calling thread's network namespace; `start()` prepares the node.
 * @throws {CniError} code 7 where the options contradict themselves, 102 where the kernel refuses a socket
 */
export function createBridgeDataPath(options: BridgeDataPathOptions): DataPath {
  const { networks } = options;
  for (const key of ["name", "bridge"] as const) {
    const twice = networks.find((network, i) => networks.findIndex((other) => other[key] === network[key]) !== i);
    if (twice !== undefined) {
      throw new CniError(CniCode.invalidConfig, `Cannot set up the networks: ${key} "${twice[key]}" is there twice`);
    }
  }
  try {
    return new BridgeDataPath(options);
  } catch (caught) {
    throw interfaceError("open the bridge data path", caught);
  }
}

/**
 * Almost everything is done synchronously, since wiring a pod takes three system calls and half a millisecond. Only
 * deletions, which are slow in the kernel, are asynchronous.
 */
class BridgeDataPath implements DataPath {
  readonly policies: BridgePolicies;
  readonly services?: BridgeServices;
  readonly #services: BridgeServices;
  /** Looks for another who balances what this one does. */
  readonly #findRival: () => readonly string[];
  readonly #networks: ReadonlyMap<string, BridgeNetwork>;
  readonly #resources = new AsyncDisposableStack();
  readonly #pairs: PodPairs;
  /** By the networks' names. */
  readonly #ports: ReadonlyMap<string, GuardedPorts>;
  /** The bridges as the last ADDs found them, by the networks' names. */
  readonly #standing = new Map<string, Link>();
  /** Absent if the node is not in a cluster. */
  readonly #others: OtherNodes | undefined;
  /** The networks as the installed packet rules have them. */
  #forwarded: readonly ForwardedNetwork[] = [];
  /** What pods can do because the node has no packet rules. */
  #unguarded: string | undefined;

  constructor({ networks: configured, cluster, services, leasedTo, logger }: BridgeDataPathOptions) {
    // Where `br_netfilter` translates it, what a pod sends to itself leaves by the port that it came from.
    const networks = configured.map((network) => ({ ...network, hairpin: network.hairpin || services !== undefined }));
    this.#networks = new Map(networks.map((network) => [network.name, network]));
    this.#pairs = this.#resources.use(new PodPairs(logger));
    const filters = this.#resources.use(this.#pairs.tools.kernel.openPacketFilterSocket());
    this.policies = new BridgePolicies(networks[0]?.bridge ?? "", {
      socket: filters,
      openReports: (group) => this.#pairs.tools.kernel.openPacketReports(group),
      families: [...new Set(networks.flatMap(({ subnets }) => subnets.map(({ ip }) => ip.family)))],
      bridges: () => this.#bridges(),
    });
    this.#resources.use(this.policies);
    this.#services = new BridgeServices(networks[0]?.bridge ?? "", {
      socket: filters,
      reading: this.#resources.use(this.#pairs.tools.kernel.openPacketFilterSocket()),
      options: services,
      bridges: () => this.#bridges(),
      endConnections: (changes) => endStaleConnections(filters, changes, (ip) => this.#isOwn(ip)),
    });
    if (services !== undefined) this.services = this.#services;
    const { socket } = this.#pairs.tools;
    this.#findRival = services?.proxyAll === true ? () => kubeProxyBeside(filters, socket) : () => [];
    this.#ports = new Map(
      networks.map((network) => [
        network.name,
        new GuardedPorts(network, this.#pairs, filters, this.policies, leasedTo),
      ]),
    );
    if (cluster === undefined) return;
    const others = new OtherNodes({ cluster, socket, setRules: () => this.#followRules(), logger });
    this.#others = this.#resources.use(others);
  }

  get podMtu(): number {
    const [first] = this.#networks.values();
    return first?.mtu ?? defaultMtu;
  }

  async start(): Promise<void> {
    const networks = [...this.#networks.values()];
    const { socket } = this.#pairs.tools;
    try {
      const bridges = networks.map((network) => ({ network, link: ensureBridge(socket, network).link }));
      this.#pairs.removeHalfMade(bridges.map(({ link }) => link.index));
      const guarded = bridges.filter(({ network, link }) => this.#portsOf(network).restore(link));
      this.policies.start();
      for (const { network, link } of guarded) this.#portsOf(network).putBack(link);
    } catch (caught) {
      throw interfaceError("prepare the bridges", caught);
    }
    turnOnForwarding(networks.map(routed));
    await this.#installRules();
    await this.#services.start();
    await this.#reachOthers();
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
      return await wire(tools, plan, namespace, this.#portsOf(network).hostPort(this.#bridgeFor(network)));
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async detach(owner: Owner): Promise<void> {
    try {
      this.#ports.get(owner.network)?.dismiss(owner, this.#pairs.takeOutOfService(owner));
    } catch (caught) {
      throw interfaceError(`detach "${owner.ifname}" of sandbox "${owner.sandboxId}"`, caught);
    }
  }

  async check(owner: Owner, netns: string, prevResult: CniResult): Promise<void> {
    const action = `check "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const network = this.#networkOf(owner, action);
    try {
      this.#pairs.check(owner, netns, prevResult, (host) => {
        const bridge = findLink(this.#pairs.tools.socket, { name: network.bridge });
        if (bridge === undefined) throw mismatch(`the bridge "${network.bridge}"`, "missing", "on the node");
        compareHostEnd(host, bridge);
        this.#portsOf(network).compare(bridge, host);
      });
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async list(): Promise<readonly Attached[]> {
    try {
      return this.#attachments().map(({ alias, link }) => {
        const network = this.#networks.get(alias.owner.network);
        const mac = network === undefined ? undefined : this.#portsOf(network).macAt(link.index);
        return { ...alias, hostIfname: link.name, port: link.index, ...(mac === undefined ? {} : { mac }) };
      });
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

  /** Only pods have addresses of a bridge's subnet, and those have leases. */
  addressesInUse(): readonly Ip[] {
    return [];
  }

  async problems(): Promise<readonly Problem[]> {
    try {
      const guarded = this.#unguarded === undefined ? this.#forwarded : [];
      return this.#findProblems(await missingPacketRules(this.#pairs.tools.kernel, guarded));
    } catch (caught) {
      throw interfaceError("look for problems", caught);
    }
  }

  async degraded(): Promise<readonly string[]> {
    const routers = [...this.#networks.values()].flatMap(({ bridge }) => routersAccepted(bridge));
    const others = this.#others?.shortcomings() ?? [];
    return [
      ...(this.#unguarded === undefined ? [] : [this.#unguarded]),
      ...others,
      ...routers,
      ...this.#findRival(),
      ...kernelNearlyFull(),
    ];
  }

  watch(look: () => Promise<void>): AsyncDisposable {
    const { kernel, logger } = this.#pairs.tools;
    const ports = [...this.#ports.values()];
    return watchNode({
      kernel,
      tables: [...this.#networks.values()].flatMap((of) => [
        packetTable(of),
        policyTable(of.bridge).name,
        serviceTable(of.bridge).name,
      ]),
      isPort: (index) => ports.some((each) => each.isGuarded(index)),
      look: async () => {
        this.#others?.trigger();
        // The kernel sends no notices about these settings, so they are set again.
        for (const { bridge } of this.#networks.values()) ignoreRouters(bridge);
        await look();
      },
      logger,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  async #installRules(): Promise<void> {
    this.#forwarded = this.#toForward();
    this.#unguarded = await installPacketRules(this.#forwarded);
    // The elements were deleted with the table.
    for (const ports of this.#ports.values()) ports.announce();
  }

  /** The rules depend on the cluster's nodes and change with them. */
  async #followRules(): Promise<void> {
    if (exemptText(this.#toForward()) !== exemptText(this.#forwarded)) await this.#installRules();
  }

  #toForward(): readonly ForwardedNetwork[] {
    return [...this.#networks.values()].map((network) => ({
      ...network,
      exempt: this.#others?.exempt(network.name) ?? [],
    }));
  }

  /** A node without a cluster removes the routes of an earlier one. */
  async #reachOthers(): Promise<void> {
    try {
      if (this.#others === undefined) removeNodeRoutes(this.#pairs.tools.socket);
      else await this.#others.start();
    } catch (caught) {
      throw interfaceError("set the routes to other nodes' pods", caught);
    }
  }

  /** The bridge for one more pod. It is only created if it is missing; `problems` reports other faults. */
  #bridgeFor(network: BridgeNetwork): Link {
    const { socket } = this.#pairs.tools;
    const standing = findAgain(socket, network.bridge, this.#standing.get(network.name));
    if (standing?.kind === "bridge" && standing.up) {
      this.#standing.set(network.name, standing);
      return standing;
    }
    const { link: bridge, created } = ensureBridge(socket, network);
    if (created) this.#portsOf(network).putBack(bridge);
    return bridge;
  }

  #portsOf({ name }: BridgeNetwork): GuardedPorts {
    const ports = this.#ports.get(name);
    if (ports === undefined) throw new Error(`Broken invariant: the network "${name}" has no ports`);
    return ports;
  }

  #bridges(): readonly PolicedBridge[] {
    const { socket } = this.#pairs.tools;
    return [...this.#networks.values()].flatMap(({ bridge }) => {
      const mac = parseMac(findLink(socket, { name: bridge })?.mac ?? "");
      return mac === undefined ? [] : [{ name: bridge, mac }];
    });
  }

  #isOwn(ip: Ip): boolean {
    const { socket } = this.#pairs.tools;
    return socket.dump(listAddresses(0), readAddress).some(({ address }) => sameIp(address.ip, ip));
  }

  #attachments(isWanted = (network: string): boolean => this.#networks.has(network)): readonly Attachment[] {
    return this.#pairs.attachments(isWanted);
  }

  #findProblems(missingRules: readonly string[]): Problem[] {
    const networks = [...this.#networks.values()];
    const attachments = this.#attachments();
    const problems = networks.flatMap((network) => {
      const own = attachments.filter(({ alias }) => alias.owner.network === network.name);
      const missing = [...missingFromBridge(this.#pairs.tools.socket, network), ...this.#portsOf(network).missing(own)];
      return missing.map((message) => problem(own.length > 0, message));
    });
    for (const message of forwardingProblems(networks.map(routed)))
      problems.push(problem(attachments.length > 0, message));
    for (const message of this.policies.problems()) problems.push(problem(attachments.length > 0, message));
    for (const message of this.#services.problems()) problems.push(problem(attachments.length > 0, message));
    for (const message of missingRules) problems.push(problem(attachments.length > 0, message));
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

const routed = ({ subnets, bridge }: BridgeNetwork) => ({ subnets, device: bridge });

const exemptText = (networks: readonly ForwardedNetwork[]): string =>
  networks.map(({ exempt = [] }) => exempt.map(formatCidr).join()).join("\n");

const problem = (hasPods: boolean, message: string): Problem => ({ code: hasPods ? 51 : 50, message });
