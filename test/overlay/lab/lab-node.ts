import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { AgentHome, type AgentProcess } from "../../support/agent-process.ts";
import { NetworkNamespace } from "../../support/network-namespace.ts";
import { OpenVswitch } from "../open-vswitch.ts";
import { type Link, nodeMac, nodeOn, routerOn } from "./addresses.ts";
import { IpsecDaemons, type LabEsp } from "./ipsec-daemons.ts";
import { LabPod, type PodRequest } from "./lab-pod.ts";
import { OwnRun } from "./own-run.ts";
import { leadThroughKernel } from "./through-kernel.ts";
import { type Underlay, withLength } from "./underlay.ts";

/** Name of the node's own interface. */
const nic = "nic0";
/** The bridge for it where the pods' bridge does not take it. */
const outerBridge = "br-phy";
/** The secret of all nodes. */
export const labPsk = "lab-secret-of-all-nodes";
/** As `ip rule` takes them. */
const tunnelPackets: Readonly<Record<string, string>> = {
  geneve: "ipproto udp dport 6081",
  vxlan: "ipproto udp dport 4789",
  gre: "ipproto gre",
};
/** By the data path. */
export const podBridges = { ovs: "br-int", bridge: "pipette0" } as const;

/**
 * Where the node's interface goes. `outer-bridge`: onto a bridge of its own, which holds the node's addresses, as Linux
 * nodes have it whose switch forwards in user space. `uplink`: the agent puts it onto the pods' bridge, as on Windows.
 * `plain`: nowhere, as on nodes without a switch. `kernel`: nowhere, and tunnels lead through the node's kernel, as they
 * do where that forwards.
 */
export type NicShape = "outer-bridge" | "uplink" | "plain" | "kernel";

/** What pods are connected by: Open vSwitch, or a bridge of the kernel alone. */
export type LabDataPath = keyof typeof podBridges;

export interface NodeSpec {
  readonly number: number;
  readonly link: Link;
  readonly nic: NicShape;
  /** Default: `ovs`. */
  readonly dataPath?: LabDataPath;
  /** Directory of the compiled executables. */
  readonly executables: string;
  /** It has a /run of its own, since what encrypts listens there under a name that every node has. */
  readonly hasOwnRun?: boolean;
  /** It has strongSwan and ovs-monitor-ipsec, of which that encrypts. */
  readonly esp?: LabEsp;
  /** Its only addresses are of IPv6. */
  readonly onlyIpv6?: boolean;
  /** Where the node's directories are made. */
  readonly parent: string;
  /** Sections of agent.yaml beside those that the node itself knows; without `nodes` it is alone. */
  readonly config: { readonly ovs?: object; readonly nodes?: object } & Readonly<Record<string, unknown>>;
}

/** One node: a network namespace with an agent of its own and mostly an Open vSwitch, driven through the CNI plugin. */
export class LabNode implements AsyncDisposable {
  readonly number: number;
  readonly name: string;
  readonly link: Link;
  /** One per family, whether the node has it or not. */
  readonly addresses: readonly [string, string];
  readonly #onlyIpv6: boolean;
  readonly namespace: NetworkNamespace;
  readonly home: AgentHome;
  readonly executables: string;
  /** The node's own interface to its pods, where their gateway is. */
  readonly gatewayDevice: string;
  readonly pods = new Set<LabPod>();
  #agent: AgentProcess | undefined;
  readonly #nic: NicShape;
  readonly #vswitch: OpenVswitch | undefined;
  readonly #ownRun: OwnRun | undefined;
  readonly #daemons: IpsecDaemons | undefined;
  /** The secret that its agents find in their environment. */
  psk = labPsk;
  /** Other variables of the environment of agents that start from now on. */
  variables: Readonly<Record<string, string>> = {};
  #ovs: object;

  private constructor(
    spec: NodeSpec,
    namespace: NetworkNamespace,
    vswitch: OpenVswitch | undefined,
    ownRun: OwnRun | undefined,
    daemons: IpsecDaemons | undefined,
  ) {
    this.number = spec.number;
    this.name = `n${spec.number}`;
    this.link = spec.link;
    this.addresses = nodeOn(spec.link, spec.number);
    this.#onlyIpv6 = spec.onlyIpv6 === true;
    this.namespace = namespace;
    this.#vswitch = vswitch;
    this.#ownRun = ownRun;
    this.#daemons = daemons;
    this.executables = spec.executables;
    this.gatewayDevice = vswitch === undefined ? podBridges.bridge : "pipette-gw0";
    this.#nic = spec.nic;
    const config = agentConfig(spec, this, vswitch);
    this.#ovs = Object(config["ovs"]);
    this.home = new AgentHome(
      config,
      spec.executables,
      ["setpriv", "--pdeathsig", "KILL", "nsenter", `--net=${namespace.path}`, ...(ownRun?.entering ?? [])],
      spec.parent,
    );
  }

  /** With its switch, its interface on the link and its addresses; the agent does not run yet. */
  static async start(spec: NodeSpec, underlay: Underlay): Promise<LabNode> {
    await using made = new AsyncDisposableStack();
    const namespace = made.use(NetworkNamespace.create());
    await namespace.ip("link set lo up");
    const cable = underlay.connect(spec.link, spec.number, namespace, nic, nodeMac(spec.number));
    const vswitch =
      spec.dataPath === "bridge"
        ? undefined
        : made.use(await OpenVswitch.start("both", { parent: spec.parent, within: namespace.within }));
    const ownRun = spec.hasOwnRun === true ? made.use(await OwnRun.start(namespace)) : undefined;
    const { esp } = spec;
    const daemons =
      esp === undefined || ownRun === undefined || vswitch === undefined
        ? undefined
        : made.use(await IpsecDaemons.start(namespace, ownRun, vswitch, esp));
    await cable;
    const node = new LabNode(spec, namespace, vswitch, ownRun, daemons);
    await node.#connectNic(nodeMac(spec.number));
    made.move();
    return node;
  }

  /** Its Open vSwitch. @throws where it has none */
  get vswitch(): OpenVswitch {
    if (this.#vswitch === undefined) throw new Error(`${this.name} has no Open vSwitch`);
    return this.#vswitch;
  }

  /** Its strongSwan. @throws where it has none */
  get ipsec(): IpsecDaemons {
    if (this.#daemons === undefined) throw new Error(`${this.name} has no strongSwan`);
    return this.#daemons;
  }

  /** The running agent's process. */
  get agent(): AgentProcess {
    if (this.#agent === undefined) throw new Error(`The agent of ${this.name} has not been started`);
    return this.#agent;
  }

  /** Keys of the section `ovs` for the agents that start from now on. */
  changeOvs(keys: object): void {
    this.#ovs = { ...this.#ovs, ...keys };
    this.home.change({ ovs: this.#ovs });
  }

  /** Starts the agent, for the first time or again, and waits until it is ready. */
  async startAgent(): Promise<void> {
    const secret = this.#daemons === undefined ? {} : { PIPETTE_IPSEC_PSK: this.psk };
    this.#agent = await this.home.start({ ...this.variables, ...secret });
  }

  /** A pod that is still to be added. */
  pod(name: string, request: PodRequest = {}): LabPod {
    const pod = new LabPod(this, name, request);
    this.pods.add(pod);
    return pod;
  }

  /** ADD of a new pod. @throws with what the plugin said */
  async addPod(name: string, request: PodRequest = {}): Promise<LabPod> {
    const pod = this.pod(name, request);
    await pod.add();
    return pod;
  }

  /** What Open vSwitch has on the pods' bridge, a flow per line, sorted, without counters. */
  async flows(): Promise<string[]> {
    const lines = (await this.ofctl("dump-flows", "--no-stats", "--no-names")).split("\n");
    return lines
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .sort();
  }

  /**
   * Takes flows out behind the agent's back, by a match as ovs-ofctl reads it, and waits until no packet goes by what the
   * switch had kept of them. @throws where there is none
   */
  async deleteFlows(match: string): Promise<void> {
    const before = (await this.flows()).length;
    await this.ofctl("del-flows", match);
    if ((await this.flows()).length === before) throw new Error(`There was no flow "${match}" on ${this.name}`);
    await this.vswitch.forgetCachedFlows();
  }

  /** Has ovs-ofctl do something on the pods' bridge, behind the agent's back; answers its output. */
  ofctl(command: string, ...args: readonly string[]): Promise<string> {
    const target = `unix:${this.vswitch.management(podBridges.ovs)}`;
    return this.vswitch.run("ovs-ofctl", "-O", "OpenFlow15", command, target, ...args);
  }

  /** Processes of a program in the node's namespace. */
  processes(program: string): readonly number[] {
    const own = readlinkSync(this.namespace.path);
    return readdirSync("/proc").flatMap((name) => {
      try {
        const isOne = /^\d+$/.test(name) && readFileSync(`/proc/${name}/comm`, "utf8").trim() === program;
        return isOne && readlinkSync(`/proc/${name}/ns/net`) === own ? [Number(name)] : [];
      } catch {
        return [];
      }
    });
  }

  /** Runs `pipette` on the node, with these arguments. */
  pipette(...args: readonly string[]): Promise<string> {
    return this.namespace.run([`${this.executables}/pipette`, ...args].join(" "));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
    await this.#daemons?.[Symbol.asyncDispose]();
    await this.#ownRun?.[Symbol.asyncDispose]();
    await this.#vswitch?.[Symbol.asyncDispose]();
    for (const pod of this.pods) pod.namespace[Symbol.dispose]();
    this.namespace[Symbol.dispose]();
  }

  async #connectNic(mac: string): Promise<void> {
    const holder = this.#nic === "outer-bridge" ? outerBridge : nic;
    if (holder === outerBridge) {
      const bridge = ["datapath_type=netdev", "fail_mode=standalone", `other_config:hwaddr="${mac}"`];
      await this.vswitch.vsctl(
        ...["add-br", outerBridge, "--", "set", "Bridge", outerBridge, ...bridge],
        ...["--", "add-port", outerBridge, nic],
      );
    }
    this.namespace.sysctl({ [`ipv6/conf/${holder}/accept_dad`]: 0 });
    const own = (both: readonly string[]): readonly string[] => (this.#onlyIpv6 ? both.slice(1) : both);
    await this.namespace.ip(
      `link set ${nic} up`,
      `link set ${holder} up`,
      ...own(withLength(this.addresses)).map((address) => `addr add ${address} dev ${holder} nodad`),
      ...own(routerOn(this.link)).map((router) => `route add default via ${router}`),
    );
    if (this.#nic !== "kernel") return;
    const { link, number } = this;
    const packets = tunnelPackets[Object(this.#ovs).tunnel ?? "geneve"] ?? "";
    await leadThroughKernel(this.namespace, this.vswitch, { bridge: outerBridge, uplink: nic, packets, link, number });
  }
}

function agentConfig(spec: NodeSpec, node: LabNode, vswitch: OpenVswitch | undefined): Record<string, unknown> {
  const { ovs, nodes, ...others } = spec.config;
  const dataPath = vswitch === undefined ? "bridge" : "ovs";
  const addresses = spec.onlyIpv6 ? node.addresses.slice(1) : node.addresses;
  return {
    dataPath,
    networks: [{ name: "pods", bridge: podBridges[dataPath] }],
    ...(vswitch === undefined
      ? {}
      : {
          ovs: {
            database: `unix:${vswitch.socket}`,
            datapath: "netdev",
            ...(spec.nic === "uplink" ? { uplink: nic } : {}),
            ...ovs,
          },
        }),
    ...(nodes === undefined ? {} : { nodes: { name: node.name, addresses, ...nodes } }),
    ...others,
  };
}
