import type { StartTrace } from "../../../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { contains, type Family, hostBlock, type Ip, parseIp, sameIp } from "../../../../shared/net/ip.ts";
import type { ClusterNode } from "../../../cluster/node-registry.ts";
import { flushConnections, packetOut } from "../../../protocols/openflow/mod.ts";
import type { PacketTrace, PacketTracing } from "../../tracing.ts";
import type { PodPort } from "../overlay-node.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import {
  arrivalFlows,
  injectedFlows,
  injection,
  type LookingNode,
  type Picked,
  pickFlows,
  reportFlows,
  traceCookie,
  wayTo,
} from "../pipeline/mod.ts";
import { zones } from "../pipeline/registers.ts";
import type { OvsPolicies } from "../policies/ovs-policies.ts";
import { withCniErrors } from "../switch-presence.ts";
import { FollowedPackets } from "./followed-packets.ts";
import { frameOf } from "./frame.ts";
import { SwitchTrace, type SwitchTraceOptions } from "./packet-trace.ts";
import { ruleText } from "./rule-text.ts";
import type { NamedPort, TraceNames } from "./steps.ts";

/** A pod of this node with its port. */
export interface TracedPod {
  readonly port: PodPort;
  readonly ofport: number;
}

/** What of a node its traces need; it is asked anew for each. */
export interface TracedNode {
  readonly management: string;
  readonly title: string;
  /** This node's name, and the others by theirs. */
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  readonly name: string;
  readonly policies: Pick<OvsPolicies, "ruleOf" | "isolating">;
  /** @throws {CniError} 11 before the node is set up, and while the switch is away */
  running(): { readonly context: PipelineContext; readonly round: number };
  pods(): readonly TracedPod[];
  /** Answers when packets go by changed flows. */
  settled(): Promise<void>;
}

/** Traces that a node has at a time: people wait for each. */
const maxTraces = 4;
/** More than there are at once: those that have ended and may still have flows keep theirs for some seconds. */
const maxNumber = 200;
const action = "trace packets";

export class OvsTracing implements PacketTracing {
  readonly #node: TracedNode;
  /** Numbers of those that have flows in the switch. */
  readonly #numbers = new Set<number>();
  /** Of these, those that run. */
  readonly #running = new Set<number>();

  constructor(node: TracedNode) {
    this.#node = node;
  }

  get title(): string {
    return this.#node.title;
  }

  async start(request: StartTrace): Promise<PacketTrace> {
    const number = Array.from({ length: maxNumber }, (_, i) => i + 1).find((one) => !this.#numbers.has(one));
    if (number === undefined || this.#running.size >= maxTraces)
      throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${maxTraces} others run on this node, wanted fewer`);
    this.#numbers.add(number);
    this.#running.add(number);
    try {
      const ended = (): void => void this.#running.delete(number);
      const over = (): void => void this.#numbers.delete(number);
      return await withCniErrors(() => SwitchTrace.start({ ...this.#plan(request, number), ended, over }));
    } catch (caught) {
      this.#running.delete(number);
      this.#numbers.delete(number);
      throw caught;
    }
  }

  #plan(request: StartTrace, number: number): Omit<SwitchTraceOptions, "ended" | "over"> {
    const { management, policies } = this.#node;
    const { context, round } = this.#node.running();
    const probe = new Uint8Array(Buffer.from(request.probe, "hex"));
    const names = namesOf(this.#node, context, policies, routedTo(request, context));
    const common = {
      ...{ management, seconds: request.seconds, settled: () => this.#node.settled() },
      cookie: traceCookie(round, number),
      mayComeLate: request.role === "receive",
      packets: new FollowedPackets({ names, ...(request.role === "live" ? {} : { probe }) }),
    };
    const report = reportFlows(round, number);
    if (request.role === "live")
      return {
        ...common,
        flows: report,
        picking: this.#picked(request).flatMap((one) => pickFlows(round, number, one)),
      };
    const tag = given(request.tag, "tag");
    const through = request.role === "inject" ? this.#through(context, request) : [];
    const flows = [...report, ...injectedFlows(context, { round, number, tag, through })];
    if (request.role === "inject") return { ...common, flows, picking: [], ...this.#sending(request, context, number) };
    const arrivals = this.#arriving(request, tag).flatMap((one) => arrivalFlows(context, round, number, one));
    return { ...common, flows: [...flows, ...arrivals], picking: [] };
  }

  /** Other nodes that look out for the packet, as this node knows them, or as whoever asks does. */
  #through(context: PipelineContext, request: StartTrace): readonly LookingNode[] {
    const routed = routedTo(request, context);
    const told = routed === undefined ? [] : [{ subnets: [hostBlock(routed.ip)] }];
    const known = (request.through ?? []).flatMap((name) => {
      const node = this.#node.nodes.get(name);
      if (node === undefined || name === this.#node.name) return [];
      const ways = node.subnets.map((subnet) => wayTo(context, node, subnet));
      const tunnel = ways.find((way) => way?.t === "tunnel");
      return [{ subnets: node.subnets, ...(tunnel?.t === "tunnel" ? { tunnel: tunnel.remote } : {}) }];
    });
    return [...known, ...told];
  }

  /** The packet, and what ends the connection that it has opened where it asked a service. */
  #sending(
    request: StartTrace,
    { gateway }: PipelineContext,
    number: number,
  ): Pick<SwitchTraceOptions, "packet" | "forget"> {
    const { port, ofport } = this.#pod(given(request.sourcePod, "sourcePod"));
    const destination = addressesIn(request.destination)[0];
    if (destination === undefined) throw wrong('"destination" is missing');
    const source = port.ips.find(({ family }) => family === destination.family);
    if (source === undefined) throw wrong(`the pod has no address of IPv${destination.family}`);
    const neighbour = this.#node.pods().find((pod) => pod.port.ips.some((ip) => sameIp(ip, destination)));
    const protocol = given(request.protocol, "protocol");
    const sourcePort = given(request.sourcePort, "sourcePort");
    const { destinationPort = 0 } = request;
    const frame = frameOf({
      ...{ sourceMac: port.mac, destinationMac: neighbour?.port.mac ?? gateway.mac, source, destination },
      ...{ protocol, sourcePort, destinationPort },
      payload: new Uint8Array([...title, ...Buffer.from(request.probe, "hex")]),
    });
    const packet = packetOut(frame, injection(number), ofport);
    if (protocol === "icmp") return { packet };
    const original = { source, destination, sourcePort, destinationPort };
    return { packet, forget: flushConnections({ protocol, zone: zones[source.family].main, original }) };
  }

  #arriving(request: StartTrace, tag: number): readonly Picked[] {
    const sources = addressesIn(request.source);
    if (sources.length === 0) throw wrong('"source" is missing');
    const protocol = given(request.protocol, "protocol");
    const { sourcePort } = request;
    return sources.map((source) => ({
      ...{ family: source.family, source, protocol, tag },
      ...(sourcePort === undefined ? {} : { sourcePort }),
    }));
  }

  /** Of each family, each sender and each receiver that is named. */
  #picked(request: StartTrace): readonly Picked[] {
    const { sourcePod, protocol, destinationPort } = request;
    const pod = sourcePod === undefined ? undefined : this.#pod(sourcePod);
    const sources = pod?.port.ips ?? addressesIn(request.source);
    const destinations = addressesIn(request.destination);
    if (sources.length + destinations.length === 0) throw wrong("neither sender nor receiver is named");
    const protocols = protocol === undefined && destinationPort !== undefined ? (["tcp", "udp"] as const) : [protocol];
    const families: readonly Family[] = [4, 6];
    const sides = (all: readonly Ip[], family: Family): readonly (Ip | undefined)[] =>
      all.length === 0 ? [undefined] : all.filter((ip) => ip.family === family);
    return families.flatMap((family) =>
      sides(sources, family).flatMap((source) =>
        sides(destinations, family).flatMap((destination) =>
          protocols.map((each) => ({
            family,
            ...(pod === undefined ? {} : { inPort: pod.ofport }),
            ...(source === undefined ? {} : { source }),
            ...(destination === undefined ? {} : { destination }),
            ...(each === undefined ? {} : { protocol: each }),
            ...(destinationPort === undefined ? {} : { destinationPort }),
          })),
        ),
      ),
    );
  }

  #pod(name: string): TracedPod {
    const found = this.#node
      .pods()
      .find(({ port: { pod } }) => pod !== undefined && `${pod.namespace}/${pod.name}` === name);
    if (found !== undefined) return found;
    throw new CniError(CniCode.unknownContainer, `Cannot ${action}: node "${this.#node.name}" has no pod "${name}"`);
  }
}

/** In front of what an injected packet is known by: for people who see it elsewhere. */
const title = new TextEncoder().encode("pipette trace ");

function given<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw wrong(`"${name}" is missing`);
  return value;
}

const wrong = (is: string): CniError => new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}`);

const addressesIn = (texts: readonly string[] = []): readonly Ip[] =>
  texts.map((text) => {
    const ip = parseIp(text);
    if (ip === undefined) throw wrong(`"${text}" is no address`);
    return ip;
  });

/** A receiver, and the node that looks out for it. */
interface RoutedTo {
  readonly ip: Ip;
  readonly node: string;
}

/**
 * Where another plugin gives addresses and routes them, this node does not know whose they are. Whoever asks does: it has
 * one node look out for this receiver, and so the packet may go there.
 */
function routedTo({ role, destination, through = [] }: StartTrace, { mode }: PipelineContext): RoutedTo | undefined {
  const [node, ...others] = through;
  const [ip] = addressesIn(destination);
  if (mode !== "networkPolicyOnly" || role !== "inject" || others.length > 0) return undefined;
  return node === undefined || ip === undefined ? undefined : { ip, node };
}

function namesOf(
  { nodes, name, pods }: TracedNode,
  { gateway, tunnel, uplink, nodeAddresses, mode }: PipelineContext,
  policies: TracedNode["policies"],
  routed: RoutedTo | undefined,
): TraceNames {
  const named = (ofport: number): NamedPort => {
    const pod = pods().find((one) => one.ofport === ofport)?.port;
    if (pod !== undefined) {
      const of = pod.pod === undefined ? {} : { pod: `${pod.pod.namespace}/${pod.pod.name}` };
      return { name: pod.port, kind: "pod", ...of };
    }
    const kinds = [
      ["tunnel", tunnel?.ofport],
      ["gateway", gateway.ofport],
      ["uplink", uplink?.ofport],
    ] as const;
    const kind = kinds.find(([, number]) => number === ofport)?.[0];
    return kind === undefined ? { name: String(ofport), kind: "other" } : { name: kind, kind };
  };
  const others = [...nodes.values()].filter((node) => node.name !== name);
  return {
    port: named,
    isRoutedOnly: mode === "networkPolicyOnly",
    rule: (number) => {
      const rule = policies.ruleOf(number);
      return rule && { policy: `${rule.policy.namespace}/${rule.policy.name}`, rule: ruleText(rule) };
    },
    isolating: (direction, at) => policies.isolating(direction, at),
    nodeOf: (ip) =>
      others.find(
        ({ subnets, addresses }) =>
          [...subnets.filter((subnet) => contains(subnet, ip)), ...addresses.filter((own) => sameIp(own, ip))].length >
          0,
      )?.name ?? (routed !== undefined && sameIp(routed.ip, ip) ? routed.node : undefined),
    nodeAt: (address) => others.find(({ addresses }) => addresses.some((own) => sameIp(own, address)))?.name,
    isOwn: (ip) => [...gateway.addresses, ...nodeAddresses.map((own) => own.ip)].some((own) => sameIp(own, ip)),
  };
}
