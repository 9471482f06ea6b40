import { ownerKey } from "../../../shared/cni/owner-key.ts";
import type { CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { type Cidr, formatIp, type Ip } from "../../../shared/net/ip.ts";
import { podMtu } from "../../config/pod-mtu.ts";
import type { AgentSamples } from "../../metrics/meter.ts";
import type { Attached, AttachRequest, DataPath, Missing, Problem } from "../datapath.ts";
import {
  type ConnectedPod,
  type OverlayNode,
  type OvsDataPathOptions,
  OvsNode,
  type OvsNodeOptions,
  OvsPolicies,
  openDatabase,
  type PodPort,
  servicesOf,
  withCniErrors,
} from "../ovs/mod.ts";
import type { PolicyEnforcement } from "../policies.ts";
import type { ServiceProxy } from "../services.ts";
import type { PacketTracing } from "../tracing.ts";
import { AdapterWaiter } from "./adapter-waiter.ts";
import type { OverlaySide } from "./node-side.ts";
import type { HnsNetwork } from "./options.ts";
import { type HostRunner, startedPods } from "./windows-host/mod.ts";

export interface OverlayDataPathOptions {
  /** Makes the endpoints. Disposed with this one. */
  readonly hns: DataPath;
  /**
   * To be called before the HNS network takes the adapter, after which only the switch reaches the network.
   * @throws {CniError} 11 where there is none
   */
  requireSwitch(): Promise<void>;
  /** Called once the HNS network exists: the node's part of the overlay. */
  openNode(): OverlayNode;
  /** Sets up the gateway's adapter and the routes again after an HNS network was deleted with them. */
  restoreHost(): Promise<void>;
  /** Of the node that is opened. */
  readonly policies: PolicyEnforcement;
  readonly services: ServiceProxy | undefined;
  /** Waits for the pods' adapters, by the node that is opened. Disposed with this one. */
  waiterOn(node: OverlayNode): AdapterWaiter;
}

interface Started {
  readonly node: OverlayNode;
  readonly waiter: AdapterWaiter;
}

/**
 * Pods as endpoints of HNS whose packets Open vSwitch forwards. An endpoint is created before its port and removed
 * after it; the port has no device until the pod's first container starts, when its flows are added.
 */
export class OverlayDataPath implements DataPath {
  readonly #options: OverlayDataPathOptions;
  readonly policies: PolicyEnforcement;
  readonly services?: ServiceProxy;
  #standing: Started | undefined;

  constructor(options: OverlayDataPathOptions) {
    this.#options = options;
    this.policies = options.policies;
    if (options.services !== undefined) this.services = options.services;
  }

  get tracing(): PacketTracing | undefined {
    return this.#standing?.node.tracing;
  }

  async start(): Promise<void> {
    const { hns, requireSwitch, openNode, waiterOn, restoreHost } = this.#options;
    if (this.#standing === undefined) await requireSwitch();
    await hns.start();
    if (this.#standing !== undefined) await restoreHost();
    if (this.#standing === undefined) {
      const node = openNode();
      this.#standing = { node, waiter: waiterOn(node) };
    }
    const { node, waiter } = this.#standing;
    const endpoints = new Set((await hns.list()).map(({ owner }) => ownerKey(owner)));
    await node.start(({ owner }) => endpoints.has(ownerKey(owner)));
    for (const pod of await node.pods()) if (pod.type === undefined) waiter.expect(pod);
  }

  async attach(request: AttachRequest): Promise<CniResult> {
    const { owner, container, ownLease, pod } = request;
    const action = `attach "${owner.ifname}" of sandbox "${owner.sandboxId}"`;
    const { node, waiter } = this.#requireStanding(action);
    // First, so that no endpoint is created while the database is away.
    const standing = portOf(owner, await node.pods());
    const result = await this.#options.hns.attach(request);
    // The other containers of a pod share what its sandbox has.
    if (standing !== undefined && container.kind.t === "workload") return result;
    const [host] = result.interfaces;
    if (host?.mac === undefined) throw refused(action, "HNS has no hardware address for its endpoint");
    // The endpoint was replaced: the new one's adapter does not exist yet.
    const ips = result.ips.map(({ address }) => address.ip);
    const isSame = standing?.mac === host.mac && standing.ips.map(formatIp).join() === ips.map(formatIp).join();
    if (standing !== undefined && !isSame) await node.disconnectPod(owner);
    const wanted: PodPort = {
      owner,
      port: host.name,
      mac: host.mac,
      ips,
      netns: container.netns,
      ownLease,
      ...(pod === undefined ? {} : { pod }),
      // One whose container runs stays as it is.
      ...(standing?.type === undefined || !isSame ? {} : { type: standing.type }),
    };
    request.phases?.enter("flows");
    await node.connectPod(wanted, "later");
    if (wanted.type === undefined) waiter.expect(wanted);
    return result;
  }

  /** Flows, then the port, then the endpoint: nothing may be sent to a port that another pod gets. */
  async detach(owner: Owner): Promise<void> {
    const { node, waiter } = this.#requireStanding(`detach "${owner.ifname}" of sandbox "${owner.sandboxId}"`);
    await waiter.forget(owner);
    await node.disconnectPod(owner);
    await this.#options.hns.detach(owner);
  }

  async check(owner: Owner, netns: string, prevResult: CniResult): Promise<void> {
    const { node } = this.#requireStanding(`check "${owner.ifname}" of sandbox "${owner.sandboxId}"`);
    await this.#options.hns.check(owner, netns, prevResult);
    const port = portOf(owner, await node.pods());
    const { mac, name = "" } = prevResult.interfaces[0] ?? {};
    if (port === undefined) throw differs(`the port "${name}"`, "missing in Open vSwitch", "there");
    if (mac !== undefined && port.mac !== mac)
      throw differs(`the hardware address of port "${port.port}"`, `"${port.mac}"`, `"${mac}"`);
  }

  missing(): readonly Missing[] {
    return this.#options.hns.missing?.() ?? [];
  }

  /** The port stays with its flows; its adapter will appear again. */
  async remake(missing: Missing, addresses: readonly Ip[] | undefined): Promise<boolean> {
    const { node, waiter } = this.#requireStanding(`make the endpoint of "${missing.owner.sandboxId}" again`);
    const made = (await this.#options.hns.remake?.(missing, addresses)) === true;
    const port = made ? portOf(missing.owner, await node.pods()) : undefined;
    if (port !== undefined) waiter.expect(port);
    return made;
  }

  /** A port without its endpoint is listed too, so that it gets removed. */
  async list(): Promise<readonly Attached[]> {
    const { node } = this.#requireStanding("list the pods");
    const endpoints = await this.#options.hns.list();
    const known = new Set(endpoints.map(({ owner }) => ownerKey(owner)));
    const alone = (await node.pods()).filter(({ owner }) => !known.has(ownerKey(owner)));
    return [...endpoints, ...alone.map(({ owner, port, ownLease }) => ({ owner, ownLease, hostIfname: port }))];
  }

  addresses(owner: Owner): Promise<readonly Cidr[]> {
    return this.#options.hns.addresses(owner);
  }

  addressesInUse(owner: Owner): readonly Ip[] {
    return this.#options.hns.addressesInUse(owner);
  }

  async problems(): Promise<readonly Problem[]> {
    const ofSwitch = this.#standing?.node.problems() ?? [];
    return [
      ...(await this.#options.hns.problems()),
      ...ofSwitch.map((message) => ({ code: CniCode.notAvailable, message })),
    ];
  }

  measure(samples: AgentSamples): void {
    this.#standing?.node.measure(samples);
  }

  async degraded(): Promise<readonly string[]> {
    return [...(await this.#options.hns.degraded()), ...((await this.#standing?.node.degraded()) ?? [])];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#standing?.waiter[Symbol.dispose]();
    await this.#standing?.node[Symbol.asyncDispose]();
    await this.#options.hns[Symbol.asyncDispose]();
  }

  #requireStanding(action: string): Started {
    if (this.#standing !== undefined) return this.#standing;
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: the node's part of the overlay is not set up yet`);
  }
}

const portOf = (owner: Owner, pods: readonly ConnectedPod[]): ConnectedPod | undefined =>
  pods.find((pod) => ownerKey(pod.owner) === ownerKey(owner));

const refused = (action: string, is: string): CniError =>
  new CniError(CniCode.interfaceFailure, `Cannot ${action}: ${is}`);

const differs = (what: string, is: string, wanted: string): CniError =>
  new CniError(CniCode.checkFailure, `Cannot confirm the attachment: ${what} is ${is}, wanted ${wanted}`);

/** The default MTU of the node's adapter, in bytes. */
const transportMtu = 1500;

export interface OverlayParts {
  readonly hns: DataPath;
  readonly network: HnsNetwork;
  readonly side: OverlaySide;
  readonly run: HostRunner;
  readonly logger: Logger;
  /** As the configuration and the cluster have it. */
  readonly ovs: Omit<OvsDataPathOptions, "mtu" | "uplink" | "nodeAddresses">;
}

/** The data path of HNS with Open vSwitch as what forwards: the card is its uplink, the switch's adapter its own port. */
export function createOverlayDataPath({ hns, network, side, run, logger, ovs }: OverlayParts): DataPath {
  const mtuOn = (address: OvsNodeOptions["nodeAddresses"][number]): number =>
    network.mtu ?? podMtu(transportMtu, ovs.mode, ovs.tunnel.type, [address]);
  const host = side.hostNetworkOf(network);
  const policies = new OvsPolicies(ovs.management);
  const services = servicesOf(ovs);
  return new OverlayDataPath({
    hns,
    policies,
    services,
    restoreHost: () => host.again(),
    requireSwitch: async () => {
      using database = openDatabase(ovs.database);
      await withCniErrors(() => database.ready());
    },
    openNode: () => {
      const { name, address } = side.cardOf(network);
      return new OvsNode({
        ...ovs,
        uplink: name,
        nodeAddresses: [address],
        mtu: mtuOn(address),
        host,
        policies,
        services,
      });
    },
    waiterOn: (node) =>
      new AdapterWaiter({
        started: (ports) => startedPods(run, ports, mtuOn(side.cardOf(network).address)),
        connect: (pod) => node.connectPod({ ...pod, type: "internal" }, "later"),
        logger,
      }),
  });
}
