import { ownerKey, sameOwner } from "../../../../shared/cni/owner-key.ts";
import type { CniResult, Owner } from "../../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Cidr, formatCidr, type Ip } from "../../../../shared/net/ip.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import { podMtu } from "../../../config/pod-mtu.ts";
import type { AgentSamples } from "../../../metrics/meter.ts";
import { type Link, type NetlinkSocket, setLink } from "../../../protocols/netlink/mod.ts";
import type { Attached, AttachRequest, DataPath, Problem } from "../../datapath.ts";
import { kernelNearlyFull } from "../../linux/conntrack-usage.ts";
import { missingGateways } from "../../linux/gateway.ts";
import { findAgain, findLink, portsOf, undefinedIfGone } from "../../linux/host-links.ts";
import { interfaceError } from "../../linux/kernel-errors.ts";
import { kubeProxyBeside } from "../../linux/kube-proxy.ts";
import { forwardingProblems } from "../../linux/node-sysctls.ts";
import { packetTable } from "../../linux/packet-rules.ts";
import { type PodNetwork, planOf } from "../../linux/plan.ts";
import { openSandbox } from "../../linux/pod-end.ts";
import { type Attachment, PodPairs } from "../../linux/pod-pairs.ts";
import { transportMtu } from "../../linux/transport.ts";
import { watchNode } from "../../linux/watch-node.ts";
import { wire } from "../../linux/wiring.ts";
import type { PacketTracing } from "../../tracing.ts";
import { type OvsDataPathOptions, servicesOf } from "../options.ts";
import type { ConnectedPod, OverlayNode } from "../overlay-node.ts";
import { OvsNode } from "../ovs-node.ts";
import { OvsPolicies } from "../policies/ovs-policies.ts";
import type { OvsServices } from "../services/ovs-services.ts";
import { Encryption } from "./encryption/encryption.ts";
import { comparePort, switchPort } from "./host-port.ts";
import { KernelIsolation } from "./kernel-isolation.ts";
import { LinuxHost } from "./linux-host.ts";
import { Masquerade } from "./masquerade.ts";
import { ServiceSets } from "./service-sets.ts";

/**
 * Opens the data path in the calling thread's network namespace; `start()` prepares the node.
 * @throws {CniError} code 7 if the options are invalid, 102 where the kernel refuses a socket
 */
export function createOvsDataPath(options: OvsDataPathOptions): DataPath {
  try {
    return new OvsDataPath(options);
  } catch (caught) {
    throw interfaceError("open the Open vSwitch data path", caught);
  }
}

/**
 * Pods' veth pairs in the kernel, and their ports and flows in Open vSwitch. All state that the next agent needs is
 * stored there.
 */
class OvsDataPath implements DataPath {
  readonly #options: OvsDataPathOptions;
  readonly #network: PodNetwork;
  readonly #resources = new AsyncDisposableStack();
  readonly #pairs: PodPairs;
  readonly #node: OvsNode;
  readonly #masquerade: Masquerade;
  readonly #filters: NetlinkSocket;
  readonly policies: OvsPolicies;
  readonly services?: OvsServices;
  /** Where the switch is in user space. */
  readonly #isolation: KernelIsolation | undefined;
  readonly #encryption: Encryption;
  /** Connects pods both in the switch and in the kernel's rules. */
  readonly #pods: Pick<OverlayNode, "connectPod" | "disconnectPod"> = {
    connectPod: async (pod) => {
      this.#masquerade.admit(pod);
      await this.#node.connectPod(pod);
    },
    disconnectPod: async (owner) => {
      await this.#node.disconnectPod(owner);
      // The pod may have been added again meanwhile.
      if (!this.#node.hasPod(owner)) this.#masquerade.dismiss(owner);
    },
  };
  #hasStarted = false;
  /** As the last ADD found it. */
  #gatewayLink: Link | undefined;

  constructor(options: OvsDataPathOptions) {
    this.#options = options;
    const { network, podSubnets, mode, tunnel, nodeAddresses, uplink, gateway, dataDir, logger } = options;
    this.#pairs = this.#resources.use(new PodPairs(logger));
    const { socket } = this.#pairs.tools;
    const transport = transportMtu(socket, uplink, nodeAddresses);
    const mtu = options.mtu ?? podMtu(transport, mode, tunnel.type, nodeAddresses, options);
    this.#network = { name: network, subnets: podSubnets, mtu };
    const filters = this.#resources.use(this.#pairs.tools.kernel.openPacketFilterSocket());
    this.#filters = filters;
    this.#isolation = options.kind === "netdev" ? new KernelIsolation(filters, socket, gateway) : undefined;
    const serviceSets = options.services?.proxyAll === true ? new ServiceSets(filters, gateway) : undefined;
    const tools = { kernel: this.#pairs.tools.kernel, socket, filters };
    this.#encryption = this.#resources.use(
      new Encryption(options, tools, mtu, {
        onLost: () => this.#node.checkHost(),
        tunnels: () => this.#node.peerTunnels,
        greet: (tunnels) => this.#node.greet(tunnels.map(({ remote }) => remote)),
        unreached: () => this.#node.unreached,
      }),
    );
    const host = new LinuxHost(socket, gateway, dataDir, logger, this.#isolation, serviceSets, this.#encryption);
    this.policies = new OvsPolicies(options.management);
    const services = servicesOf(options);
    if (services !== undefined) this.services = services;
    this.#node = this.#resources.use(new OvsNode({ ...options, mtu, host, policies: this.policies, services }));
    this.#masquerade = this.#resources.use(new Masquerade(options, filters, serviceSets));
  }

  get podMtu(): number {
    return this.#network.mtu ?? 0;
  }

  async start(): Promise<void> {
    await this.#encryption.close();
    try {
      this.#isolation?.install(this.#hostEnds());
      this.#bringUp();
      // From the second start on the node object knows its pods.
      if (this.#hasStarted) await this.#node.start(() => true);
      else await this.#takeOver();
      this.#hasStarted = true;
    } catch (caught) {
      throw interfaceError("prepare the switch", caught);
    }
    await this.#masquerade.start();
    await this.#encryption.open();
    await this.#pairs.tools.sweeper.sweep();
  }

  async attach(request: AttachRequest): Promise<CniResult> {
    const { owner } = request;
    const action = `attach "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const plan = planOf(this.#networkOf(owner, action), request);
    const { tools } = this.#pairs;
    using namespace = openSandbox(tools.kernel, request.container.netns);
    try {
      const { bridge, kind } = this.#options;
      return await wire(tools, plan, namespace, switchPort(this.#pods, bridge, kind, this.#gateway(action)));
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async detach(owner: Owner): Promise<void> {
    try {
      await this.#pods.disconnectPod(owner);
      this.#pairs.takeOutOfService(owner);
    } catch (caught) {
      throw interfaceError(`detach "${owner.ifname}" of sandbox "${owner.sandboxId}"`, caught);
    }
  }

  async check(owner: Owner, netns: string, prevResult: CniResult): Promise<void> {
    const action = `check "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    this.#networkOf(owner, action);
    try {
      const pod = (await this.#node.pods()).find((one) => sameOwner(one.owner, owner));
      this.#pairs.check(owner, netns, prevResult, (host) => comparePort(host, pod, this.#options.bridge));
      await this.#node.checkFlows(owner);
    } catch (caught) {
      throw interfaceError(action, caught);
    }
  }

  async list(): Promise<readonly Attached[]> {
    try {
      const onSwitch = this.#node.portsOnSwitch();
      return this.#attachments().map(({ alias, link }) => ({
        ...{ ...alias, hostIfname: link.name },
        ...onSwitch.get(ownerKey(alias.owner)),
      }));
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

  /** Only our allocator gives out addresses of the node's subnets. */
  addressesInUse(): readonly Ip[] {
    return [];
  }

  async problems(): Promise<readonly Problem[]> {
    try {
      const ofRules = [...(await this.#masquerade.missing(this.#pairs.tools.kernel))];
      const ofEncryption = await this.#encryption.missing();
      const code = this.#attachments().length > 0 ? 51 : 50;
      const found = [...this.#node.problems(), ...this.#hostProblems(), ...ofRules, ...ofEncryption];
      return found.map((message) => ({ code, message }));
    } catch (caught) {
      throw interfaceError("look for problems", caught);
    }
  }

  get tracing(): PacketTracing {
    return this.#node.tracing;
  }

  tellTroubles(tell: (trouble: string) => void): void {
    this.#encryption.onTrouble = tell;
  }

  measure(samples: AgentSamples): void {
    this.#node.measure(samples);
  }

  async degraded(): Promise<readonly string[]> {
    return [
      ...this.#masquerade.degraded(),
      ...(await this.#node.degraded()),
      ...(await this.#encryption.degraded()),
      ...kernelNearlyFull(),
      ...this.#kubeProxy(),
    ];
  }

  watch(look: () => Promise<void>): AsyncDisposable {
    const { gateway: bridge, logger } = this.#options;
    return watchNode({
      kernel: this.#pairs.tools.kernel,
      tables: [packetTable({ bridge }), this.#encryption.table],
      isPort: () => false,
      look: async () => {
        this.#node.checkHost();
        await look();
      },
      logger,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  /** Takes over the state of an earlier agent. No call is served yet, so pods do not change meanwhile. */
  async #takeOver(): Promise<void> {
    this.#pairs.removeHalfMade([]);
    const attachments = this.#attachments();
    await this.#node.start((pod) => attachments.some((attachment) => isPortOf(attachment, pod)));
    this.#masquerade.adopt(this.#node.wantedPods);
    await this.#restorePorts(attachments);
  }

  /**
   * Recreates missing ports of existing interfaces, as after a loss of the database, or an agent that was killed during
   * an ADD.
   */
  async #restorePorts(attachments: readonly Attachment[]): Promise<void> {
    for (const { alias, link } of attachments) {
      if (this.#node.hasPod(alias.owner)) continue;
      const ips = this.#pairs.addresses(alias.owner, this.#network).map(({ ip }) => ip);
      const mac = this.#pairs.podMac(link);
      if (ips.length === 0 || mac === undefined) continue;
      const { logger } = this.#options;
      try {
        const pod = this.#options.podOf(alias.owner);
        const port = { port: link.name, device: String(link.index), netns: "", ...(pod === undefined ? {} : { pod }) };
        await this.#pods.connectPod({ ...alias, ...port, mac, ips });
        logger.warn("a pod's port was missing and is made again", { interface: link.name });
      } catch (caught) {
        // Other pods are still handled; CHECK reports this one.
        logger.error("cannot make a pod's port again", { interface: link.name, error: reasonOf(caught) });
      }
    }
  }

  #hostProblems(): string[] {
    const { gateway, podSubnets, mode } = this.#options;
    const { socket } = this.#pairs.tools;
    const link = findLink(socket, { name: gateway });
    if (link === undefined) return [`the gateway "${gateway}" is missing`];
    const missing = mode === "networkPolicyOnly" ? [] : missingGateways(socket, podSubnets, link);
    const down = this.#downEnds();
    return [
      ...(link.up ? [] : [`the gateway "${gateway}" is down`]),
      ...missing.map((address) => `the gateway "${gateway}" lacks the address "${formatCidr(address)}"`),
      ...forwardingProblems([{ subnets: podSubnets, device: gateway }]),
      ...(down.length === 0 ? [] : [`${portsOf(down)} down`]),
      ...(this.#isolation?.missing(this.#hostEnds()) ?? []),
    ];
  }

  /** Where the switch balances services for everybody, another one that does is in its way. */
  #kubeProxy(): readonly string[] {
    if (this.#options.services?.proxyAll !== true) return [];
    return kubeProxyBeside(this.#filters, this.#pairs.tools.socket);
  }

  /** Host's ends that are in service or should be. */
  #attachments(): readonly Attachment[] {
    return this.#pairs.attachments((network) => network === this.#network.name);
  }

  #hostEnds(): readonly Link[] {
    return this.#attachments().map(({ link }) => link);
  }

  /** An ADD names its host end and brings it up in one go, so that none of these is still being made. */
  #downEnds(): readonly Link[] {
    return this.#hostEnds().filter(({ up }) => !up);
  }

  #bringUp(): void {
    const { socket, logger } = this.#pairs.tools;
    for (const { name, index } of this.#downEnds()) {
      undefinedIfGone(() => {
        socket.run(setLink(name, index, { up: true }));
        logger.warn("a pod's port that was down is up again", { interface: name });
      });
    }
  }

  #gateway(action: string): Link {
    const { gateway } = this.#options;
    this.#gatewayLink = findAgain(this.#pairs.tools.socket, gateway, this.#gatewayLink);
    if (this.#gatewayLink !== undefined) return this.#gatewayLink;
    const is = `the gateway "${gateway}" is missing, wanted ovs-vswitchd to have made it`;
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}`);
  }

  #networkOf(owner: Owner, action: string): PodNetwork {
    if (owner.network === this.#network.name) return this.#network;
    const is = `the agent has no network "${owner.network}", wanted "${this.#network.name}"`;
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}`);
  }
}

/** The port is of this very device. */
const isPortOf = ({ alias, link }: Attachment, pod: ConnectedPod): boolean =>
  sameOwner(alias.owner, pod.owner) && link.name === pod.port && String(link.index) === pod.device;
