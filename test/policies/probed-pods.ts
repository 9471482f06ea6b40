import { setTimeout as sleep } from "node:timers/promises";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import type { NodePolicies } from "../../agent/datapath/policies.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { bitsOf, type Cidr, contains, formatIp, gatewayIn, type Ip } from "../../shared/net/ip.ts";
import type { Pod } from "../../shared/policy/mod.ts";
import { ipamOf } from "../datapath/bridge-fixture.ts";
import { EtherType, ethernet, ipv4, ipv6, udp } from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { sctpInit } from "../support/frames/sctp.ts";
import { syn } from "../support/frames/syn.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import type { NetworkSandbox } from "../support/network-sandbox.ts";
import { nodePolicies, type World } from "./node-policies.ts";

/** A node with pods, whatever its data path. */
export interface PolicedNode {
  /** As pods' `nodeName` has it. */
  readonly name: string;
  readonly dataPath: DataPath;
  /** Runs in the node's namespace; nothing else may run meanwhile. */
  within<T>(work: () => Promise<T>): Promise<T>;
  /** Of its pods; the first address of each is the gateway's. */
  readonly subnets: readonly Cidr[];
  /** The gateway's. */
  readonly mac: string;
}

export interface ProbedPod {
  readonly pod: Pod;
  readonly owner: Owner;
  readonly node: PolicedNode;
  readonly netns: string;
  readonly mac: string;
  readonly wire: RawLink;
}

/** The first packet of a connection between two pods, by their `namespace/name`. */
export interface Probe {
  readonly from: string;
  readonly to: string;
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly port: number;
  readonly family?: 4 | 6;
  /** An address that the nodes translate to the destination's. */
  readonly service?: string;
}

const numbers = { TCP: 6, UDP: 17, SCTP: 132 } as const;

/** For what is to arrive; packets on one machine take less than a millisecond. */
const arrivalMs = 5_000;
const lookEveryMs = 10;
/**
 * What is expected is sent again after so long, as TCP does: a switch in user space drops packets that have no flow yet
 * while it takes its configuration over (`datapath_drop_lock_error` of its counters).
 */
const againEveryMs = 1_000;
/** In which what must not arrive would have arrived, once all else has. */
const strayMs = 15;
const firstSourcePort = 20_000;

export const podKey = ({ namespace, name }: Pick<Pod, "namespace" | "name">): string => `${namespace}/${name}`;

export const ownerOf = (pod: Pick<Pod, "namespace" | "name">): Owner => ({
  network: "pods",
  sandboxId: `${pod.namespace}-${pod.name}`,
  ifname: "eth0",
});

/** Pods on one node or more, between which packets are sent as bytes, so that no program has to listen. */
export class ProbedPods implements Disposable {
  readonly #nodes: readonly PolicedNode[];
  readonly #pods = new Map<string, ProbedPod>();
  #sourcePort = firstSourcePort;

  constructor(nodes: readonly PolicedNode[]) {
    this.#nodes = nodes;
  }

  at(key: string): ProbedPod {
    const found = this.#pods.get(key);
    if (found === undefined) throw new Error(`there is no pod "${key}"`);
    return found;
  }

  /** Wires a pod at its node, with its addresses. */
  async attach(sandbox: NetworkSandbox, pod: Pod): Promise<ProbedPod> {
    const node = this.#nodes.find(({ name }) => name === pod.node);
    if (node === undefined) throw new Error(`there is no node "${pod.node}"`);
    const netns = await sandbox.addPod();
    const owner = ownerOf(pod);
    const { interfaces } = await node.within(() =>
      node.dataPath.attach({
        owner,
        container: { id: owner.sandboxId, netns, kind: { t: "sandbox" } },
        ownLease: true,
        pod: { namespace: pod.namespace, name: pod.name, uid: pod.uid },
        ipam: ipamOf(
          pod.ips.map((ip) => `${formatIp(ip)}/${node.subnets.find((subnet) => contains(subnet, ip))?.prefix}`),
          node.subnets.map((subnet) => formatIp(gatewayIn(subnet))),
        ),
      }),
    );
    using namespace = NetworkNamespace.at(netns);
    const wire = await RawLink.open(namespace, "eth0");
    const probed = { pod, owner, node, netns, mac: interfaces[2]?.mac ?? "", wire };
    this.#pods.set(podKey(pod), probed);
    // The node knows it as a neighbour from then on, and holds no packet back to ask.
    for (const ip of pod.ips) await node.within(() => sandbox.ping(undefined, formatIp(ip), "one"));
    return probed;
  }

  /** Has every node enforce its part. @throws where a rule is refused */
  async enforce(world: World): Promise<void> {
    for (const node of this.#nodes) await this.enforceAt(node, nodePolicies(world, ownerOf, node.name));
  }

  async enforceAt({ dataPath, name, within }: PolicedNode, wanted: NodePolicies): Promise<void> {
    const refused = await within(async () => dataPath.policies?.enforce(wanted));
    if (refused?.length !== 0) throw new Error(`"${name}" refuses ${JSON.stringify(refused)}`);
  }

  /** Sends all probes at once. @returns those that have arrived, out of `probes`; what is expected is waited for */
  async send(probes: readonly Probe[], expected: (probe: Probe) => boolean): Promise<ReadonlySet<Probe>> {
    const from = this.#sourcePort++;
    for (const { wire } of this.#pods.values()) wire.received();
    const waiting = new Map(probes.map((probe) => [this.#markOf(probe, from), probe]));
    const missing = new Set(probes.filter(expected));
    const arrived = new Set<Probe>();
    const look = (): void => {
      for (const [key, { wire }] of this.#pods)
        for (const frame of wire.received()) {
          const probe = waiting.get(`${key} ${markIn(frame)}`);
          if (probe === undefined) continue;
          arrived.add(probe);
          missing.delete(probe);
        }
    };
    const sendAll = (all: Iterable<Probe>): void => {
      for (const probe of all) {
        this.at(probe.from).wire.send(this.#frameOf(probe, from));
        look();
      }
    };
    sendAll(probes);
    for (let waitedMs = 0; missing.size > 0 && waitedMs < arrivalMs; waitedMs += lookEveryMs) {
      if (waitedMs > 0 && waitedMs % againEveryMs === 0) sendAll([...missing]);
      await sleep(lookEveryMs);
      look();
    }
    await sleep(strayMs);
    look();
    return arrived;
  }

  [Symbol.dispose](): void {
    for (const { wire } of this.#pods.values()) wire[Symbol.dispose]();
    this.#pods.clear();
  }

  #ips({ from, to, family = 4 }: Probe): readonly [Ip, Ip] {
    const [source, destination] = [from, to].map((key) => this.at(key).pod.ips.find((ip) => ip.family === family));
    if (source === undefined || destination === undefined)
      throw new Error(`${from} and ${to} have no addresses of IPv${family}`);
    return [source, destination];
  }

  #markOf(probe: Probe, sourcePort: number): string {
    const [source, destination] = this.#ips(probe);
    const ports = `${sourcePort} ${probe.port}`;
    return `${probe.to} ${hex(source)} ${hex(destination)} ${numbers[probe.protocol]} ${ports}`;
  }

  #frameOf(probe: Probe, sourcePort: number): Uint8Array {
    const { protocol, port, service } = probe;
    const [source, destination] = this.#ips(probe);
    const [from, to] = [this.at(probe.from), this.at(probe.to)];
    const ends = { from: formatIp(source), to: service ?? formatIp(destination) };
    const ports = { from: sourcePort, to: port };
    const payload =
      protocol === "TCP" ? syn(ends, ports) : protocol === "UDP" ? udp(ends, ports, [1]) : sctpInit(ports);
    const isDirect = service === undefined && from.node === to.node;
    const macs = { from: from.mac, to: isDirect ? to.mac : from.node.mac };
    return source.family === 4
      ? ethernet(macs, EtherType.ipv4, ipv4(ends, numbers[protocol], payload))
      : ethernet(macs, EtherType.ipv6, ipv6(ends, numbers[protocol], payload));
  }
}

const hex = ({ family, value }: Ip): string => value.toString(16).padStart(bitsOf(family) / 4, "0");

/** Addresses, protocol and ports of a frame, as text. */
function markIn(frame: Uint8Array): string {
  const packet = frame.subarray(14);
  const is4 = ((frame[12] ?? 0) << 8) + (frame[13] ?? 0) === EtherType.ipv4;
  const [at, bytes, upper] = is4 ? [12, 4, 20] : [8, 16, 40];
  const ip = (offset: number): string => packet.subarray(offset, offset + bytes).toHex();
  const port = (offset: number): number => ((packet[upper + offset] ?? 0) << 8) + (packet[upper + offset + 1] ?? 0);
  return `${ip(at)} ${ip(at + bytes)} ${packet[is4 ? 9 : 6]} ${port(0)} ${port(2)}`;
}
