import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeOn } from "../overlay/lab/addresses.ts";
import { LabNode } from "../overlay/lab/lab-node.ts";
import { scratchUntilEnd } from "../overlay/lab/scratch-until-end.ts";
import { Underlay } from "../overlay/lab/underlay.ts";
import { AgentHome, type AgentProcess } from "../support/agent-process.ts";
import { type CniEnded, callPlugin, runPlugin } from "../support/cni-call.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";

/** As far as these tests look into it. */
export interface AddResult {
  readonly interfaces: readonly { readonly name: string; readonly mac: string; readonly sandbox?: string }[];
  readonly ips: readonly { readonly address: string }[];
}

/** A pod as its runtime keeps it: with the configuration of its ADD, which later verbs get again. */
export interface UpgradePod {
  readonly name: string;
  readonly containerId: string;
  readonly namespace: NetworkNamespace;
  conf: Readonly<Record<string, unknown>>;
  result: AddResult;
}

/** What an agent runs on. */
interface Machine {
  readonly namespace: NetworkNamespace;
  readonly home: AgentHome;
}

/** A directory of executables in which those of one release take the place of another's, as an installation does it. */
export class BinDirectory implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "pt-bin-"));

  /** @param release directory of its executables */
  put(release: string): void {
    for (const name of ["pipette", "pipette-ipam"]) {
      symlinkSync(join(release, name), join(this.path, "new"));
      renameSync(join(this.path, "new"), join(this.path, name));
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** A node on which releases take turns, as agent and as plugin. */
export class UpgradeNode implements AsyncDisposable {
  readonly namespace: NetworkNamespace;
  readonly home: AgentHome;
  readonly #bin: BinDirectory;
  readonly #machine: AsyncDisposable;
  readonly #pods = new Set<UpgradePod>();
  readonly #switch: LabNode | undefined;
  #agent: AgentProcess | undefined;

  /** @param machine its agent has its executable in `bin`; ends with this node, and with it whatever is its own */
  private constructor(machine: Machine & AsyncDisposable, bin: BinDirectory, ovs?: LabNode) {
    this.#switch = ovs;
    this.namespace = machine.namespace;
    this.home = machine.home;
    this.#machine = machine;
    this.#bin = bin;
  }

  /** One with a kernel bridge; the agent does not run yet. @param changes keys of agent.yaml */
  static async withBridge(changes: Readonly<Record<string, unknown>> = {}): Promise<UpgradeNode> {
    const namespace = NetworkNamespace.create();
    await namespace.ip("link set lo up");
    const bin = new BinDirectory();
    const prefix = ["setpriv", "--pdeathsig", "KILL", "nsenter", `--net=${namespace.path}`];
    const home = new AgentHome(changes, bin.path, prefix);
    const dispose = async () => {
      await home[Symbol.asyncDispose]();
      namespace[Symbol.dispose]();
    };
    return new UpgradeNode({ namespace, home, [Symbol.asyncDispose]: dispose }, bin);
  }

  /**
   * One of two nodes with Open vSwitch, out of a file; the other one is not there. Projects are kept apart, and that of
   * the pods has its number from the file.
   */
  static async withOpenVswitch(): Promise<UpgradeNode> {
    await using made = new AsyncDisposableStack();
    const parent = made.use(scratchUntilEnd("pt-up-")).path;
    const underlay = made.use(Underlay.create());
    await underlay.start();
    const file = join(parent, "nodes.json");
    const nodes = ([1, 2] as const).map((number) => ({
      name: `n${number}`,
      addresses: nodeOn("a", number),
      subnets: [`10.10.${number}.0/24`, `fd10:0:0:${number}::/64`],
    }));
    writeFileSync(file, JSON.stringify({ nodes, tenants: { default: 17 } }));
    const bin = new BinDirectory();
    const config = { ovs: { tenants: "multitenant" }, nodes: { registry: { type: "static", file } } };
    const spec = { number: 1, link: "a", nic: "outer-bridge", executables: bin.path, parent, config } as const;
    const node = made.use(await LabNode.start(spec, underlay));
    const stack = made.move();
    const dispose = () => stack.disposeAsync();
    return new UpgradeNode({ namespace: node.namespace, home: node.home, [Symbol.asyncDispose]: dispose }, bin, node);
  }

  /** With Open vSwitch: the flows, without the round of the agent that told the switch. */
  async flows(): Promise<{ readonly ofPods: readonly string[]; readonly others: readonly string[] }> {
    const lines = (await this.#switch?.flows()) ?? [];
    const flows = lines.map((flow) => flow.replace(/cookie=0x[0-9a-f]{1,4}(?=[0-9a-f]{12},)/, "")).sort();
    const isOfPod = (flow: string): boolean => flow.startsWith("01");
    return { ofPods: flows.filter(isOfPod), others: flows.filter((flow) => !isOfPod(flow)) };
  }

  /** With Open vSwitch: names, numbers and owners of the pods' ports. */
  async ports(): Promise<string> {
    const { vswitch } = this.#switch ?? {};
    if (vswitch === undefined) return "";
    const interfaces = await vswitch.vsctl("--bare", "--columns=name,ofport,mac_in_use", "list", "Interface");
    const ports = await vswitch.vsctl("--columns=name,external_ids", "list", "Port");
    return [interfaces, ports].map((text) => text.split("\n\n").sort().join("\n\n")).join("\n");
  }

  /** The running agent's process. */
  get agent(): AgentProcess {
    if (this.#agent === undefined) throw new Error("The agent has not been started");
    return this.#agent;
  }

  /** Puts a release in place and starts its agent, in that of the one that runs. */
  async runAgent(release: string): Promise<void> {
    this.#bin.put(release);
    const status = await this.#agent?.end();
    if (status !== undefined && status !== 0) throw new Error(`The agent ended with ${status}: ${this.agent.stderr}`);
    await this.startAgain();
  }

  /** Starts the agent of the release that is in place, where none runs. */
  async startAgain(): Promise<void> {
    this.#agent = await this.home.start();
  }

  /** The first plugin of the configuration that the agent has written. */
  conf(): Readonly<Record<string, unknown>> {
    const { plugins, name, cniVersion } = JSON.parse(readFileSync(this.home.conflist, "utf8"));
    return { ...plugins[0], name, cniVersion };
  }

  /** A sandbox, and its ADD by the plugin of `release`. */
  async addPod(release: string, name: string): Promise<UpgradePod> {
    const namespace = NetworkNamespace.create();
    await namespace.ip("link set lo up");
    const containerId = randomBytes(32).toString("hex");
    const pod = { name, containerId, namespace, conf: this.conf(), result: { interfaces: [], ips: [] } };
    this.#pods.add(pod);
    await this.add(release, pod);
    return pod;
  }

  /** Some at once, eight at a time. */
  async addPods(release: string, names: readonly string[]): Promise<UpgradePod[]> {
    const made: UpgradePod[] = [];
    for (let i = 0; i < names.length; i += 8)
      made.push(...(await Promise.all(names.slice(i, i + 8).map((name) => this.addPod(release, name)))));
    return made;
  }

  /** ADD, for the first time or again. @throws with what the plugin said */
  async add(release: string, pod: UpgradePod): Promise<AddResult> {
    const { stdout } = await callPlugin(this.#callOf(release, "ADD", pod));
    pod.result = JSON.parse(stdout);
    return pod.result;
  }

  /** With what the runtime keeps of the ADD. @throws with what the plugin said */
  async check(release: string, pod: UpgradePod): Promise<void> {
    await callPlugin(this.#callOf(release, "CHECK", pod, { prevResult: pod.result }));
  }

  /** DEL with what the runtime keeps of the ADD, and the end of its namespace. @throws with what the plugin said */
  async remove(release: string, pod: UpgradePod): Promise<void> {
    await callPlugin(this.#callOf(release, "DEL", pod, { prevResult: pod.result }));
    pod.namespace[Symbol.dispose]();
    this.#pods.delete(pod);
  }

  /** STATUS, or GC that keeps these pods. */
  async whole(release: string, verb: "STATUS" | "GC", keep: readonly UpgradePod[] = []): Promise<CniEnded> {
    const attachments = keep.map(({ containerId }) => ({ containerID: containerId, ifname: "eth0" }));
    const extra = verb === "GC" ? { "cni.dev/valid-attachments": attachments } : {};
    const conf = { ...this.conf(), cniVersion: "1.1.0", ...extra };
    const env = { CNI_COMMAND: verb, CNI_PATH: release };
    return runPlugin({ executable: join(release, "pipette"), env, conf });
  }

  /** `pipette` of a release on this node. */
  pipette(release: string, ...words: readonly string[]): Promise<CniEnded> {
    return this.namespace.start([join(release, "pipette"), ...words]).ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#machine[Symbol.asyncDispose]();
    for (const { namespace } of this.#pods) namespace[Symbol.dispose]();
    this.#bin[Symbol.dispose]();
  }

  #callOf(release: string, verb: string, { name, containerId, namespace, conf }: UpgradePod, extra: object = {}) {
    const names = `K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name};K8S_POD_UID=${containerId.slice(0, 12)}`;
    const env = {
      CNI_COMMAND: verb,
      CNI_PATH: release,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: namespace.path,
      CNI_IFNAME: "eth0",
      CNI_ARGS: `IgnoreUnknown=1;${names}`,
    };
    return { executable: join(release, "pipette"), env, conf: { ...conf, ...extra } };
  }
}
