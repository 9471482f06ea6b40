import type { PodOnSwitch } from "../../agent/datapath/ovs/applied-pods.ts";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { Category } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import { baseFlows, podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { OvsPolicies } from "../../agent/datapath/ovs/policies/ovs-policies.ts";
import type { FlowSet, FlowSetChanges } from "../../agent/datapath/ovs/program/flow-set.ts";
import { OpenFlowProgram } from "../../agent/datapath/ovs/program/mod.ts";
import type { NodePolicies } from "../../agent/datapath/policies.ts";
import { type Control, openControl } from "../../agent/protocols/switch-control/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatIp, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

const gateway = { name: "gw0", ofport: 2, mac: "0e:00:0a:00:00:01" };
const firstPort = 11;

const context: PipelineContext = {
  mode: "encap",
  gateway: { ...gateway, addresses: [ip("10.0.255.1"), ip("fd00::ffff")] },
  nodeAddresses: [cidr("172.30.0.1/24")],
  podSubnets: [cidr("10.0.0.0/23"), cidr("10.0.2.0/24"), cidr("fd00::/64")],
  multitenant: false,
};

/** A packet of a connection. */
export interface TracedPacket {
  /** A pod that is connected, or from the gateway. */
  readonly from: Owner | undefined;
  readonly source: Ip;
  readonly destination: Ip;
  /** As policies name protocols. */
  readonly protocol: string;
  readonly port: number;
  /** As `--ct-next` takes it; absent: the connection's first packet. */
  readonly state?: string;
  /** Of the connection. */
  readonly label?: string;
}

export interface Judged {
  readonly passes: boolean;
  /** That the connection has from then on. */
  readonly label: string | undefined;
  readonly text: string;
}

/** A real switch with the pipeline's flows and policies as an agent puts them there; no packets, but traces. */
export class PolicyBridge implements AsyncDisposable {
  readonly bridge: OpenFlowBridge;
  /** How often something was put into the switch: each time in one bundle. */
  bundles = 0;
  /** Whether the switch is to refuse flow sets, by their keys. */
  refuses: (keys: readonly string[]) => boolean = () => false;
  /** Called after each bundle. */
  afterBundle: () => Promise<void> = async () => undefined;
  readonly #pods = new Map<string, PodOnSwitch>();
  #program: OpenFlowProgram | undefined;
  #policies: OvsPolicies | undefined;
  #control: Control | undefined;
  #round: number | undefined;

  private constructor(bridge: OpenFlowBridge) {
    this.bridge = bridge;
  }

  static async start(ports: number): Promise<PolicyBridge> {
    const bridge = await OpenFlowBridge.start();
    const made = new PolicyBridge(bridge);
    try {
      await bridge.addPort(gateway.name, gateway.ofport);
      for (let i = 0; i < ports; i++) await bridge.addPort(`pod${i}`, firstPort + i);
      const action = "trace packets";
      made.#control = await openControl([{ t: "unix", path: bridge.vswitch.control }], action);
      return made;
    } catch (caught) {
      await made[Symbol.asyncDispose]();
      throw caught;
    }
  }

  get policies(): OvsPolicies {
    if (this.#policies === undefined) throw new Error("No agent runs");
    return this.#policies;
  }

  /** What an agent does that starts. @param wanted what it knows by then */
  async startAgent(wanted?: NodePolicies): Promise<void> {
    await this.#program?.[Symbol.asyncDispose]();
    const management = `unix:${this.bridge.vswitch.management("br-int")}`;
    const rounds = {
      loadRound: async () => this.#round,
      saveRound: async (round: number) => {
        this.#round = round;
      },
    };
    const program = await OpenFlowProgram.start({ management, rounds });
    this.#program = program;
    const set = async (changes: FlowSetChanges): Promise<void> => {
      this.bundles++;
      const given = [...changes].flatMap(([key, flowSet]) => (flowSet === undefined ? [] : [key]));
      if (this.refuses(given)) throw new CniError(CniCode.interfaceFailure, "the switch refuses it");
      await program.set(changes);
      await this.afterBundle();
    };
    this.#policies = new OvsPolicies(management);
    if (wanted !== undefined) await this.#policies.enforce(wanted).catch(() => undefined);
    const told = {
      set,
      compare: program.compare.bind(program),
      get status() {
        return program.status;
      },
    };
    this.#policies.begin(told, context, async () => undefined);
    const before = this.#policies.alongside(this.#pods);
    const pods = [...this.#pods].map(([key, pod]) => [`pod/${key}`, flowsOf(pod)] as const);
    await program.set(
      new Map<string, FlowSet>([
        ...([...before] as [string, FlowSet][]),
        ["base", { category: Category.base, flows: baseFlows(context) }],
        ...pods,
      ]),
    );
    await program.finishRound();
  }

  /** Has these pods at its ports, in place of those of before. */
  async connect(pods: readonly (readonly [Owner, readonly Ip[]])[]): Promise<void> {
    const gone = [...this.#pods.keys()].map((key) => [key, undefined] as const);
    this.#pods.clear();
    for (const [i, [owner, ips]] of pods.entries())
      this.#pods.set(ownerKey(owner), { ofport: firstPort + i, mac: macOf(i), ips, vnid: 0 });
    const now = new Map([...gone, ...this.#pods]);
    const changes = [...now].map(([key, pod]) => [`pod/${key}`, pod === undefined ? undefined : flowsOf(pod)] as const);
    await this.#program?.set(new Map([...this.policies.alongside(now), ...changes]));
  }

  async trace({ from, source, destination, protocol, port, state = "trk,new", label }: TracedPacket): Promise<Judged> {
    const pod = from === undefined ? undefined : this.#pods.get(ownerKey(from));
    const [inPort, mac] = pod === undefined ? [gateway.ofport, gateway.mac] : [pod.ofport, pod.mac];
    const [kind, field] = source.family === 4 ? ["", "nw"] : ["6", "ipv6"];
    const icmp = source.family === 4 ? "icmp_type=8" : "icmpv6_type=128";
    const [name, more] = protocol.startsWith("ICMP")
      ? ["icmp", icmp]
      : [protocol.toLowerCase(), `${protocol.toLowerCase()}_dst=${port}`];
    const receiver = [...this.#pods.values()].find(({ ips }) => ips.map(formatIp).includes(formatIp(destination)));
    const packet = [
      `in_port=${inPort},${name}${kind},dl_src=${mac},dl_dst=${receiver?.mac ?? gateway.mac}`,
      `${field}_src=${formatIp(source)},${field}_dst=${formatIp(destination)},nw_ttl=64,${more}`,
      ...(label === undefined ? [] : [`ct_label=${label}`, "ct_mark=3"]),
    ].join(",");
    if (this.#control === undefined) throw new Error("No switch runs");
    const args = ["br-int", packet, "--ct-next", state, "--ct-next", state];
    const text = await this.#control.ask("ofproto/trace", args, "trace a packet");
    const committed = [...text.matchAll(/label=(0x[0-9a-f]+)\/(0x[0-9a-f]+)/g)];
    const known = committed.reduce(
      (all, [, value = "0", mask = "0"]) => {
        return (all & ~BigInt(mask)) | BigInt(value);
      },
      BigInt(label ?? 0),
    );
    const last = /^Datapath actions: (.*)$/m.exec(text.slice(text.lastIndexOf("Datapath actions")))?.[1] ?? "";
    return { passes: /^(\d+|.*[,)]\d+)$/.test(last), label: `0x${known.toString(16)}`, text };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#control?.[Symbol.dispose]();
    await this.#program?.[Symbol.asyncDispose]();
    await this.bridge[Symbol.asyncDispose]();
  }
}

const macOf = (i: number): string => `0a:00:0a:00:00:${(i + 1).toString(16).padStart(2, "0")}`;
const flowsOf = (pod: PodOnSwitch): FlowSet => ({ category: Category.pod, flows: podFlows(context, pod) });
