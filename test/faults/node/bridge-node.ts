import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { StatusResponse } from "../../../shared/proto/pipette-messages.ts";
import { compileExecutables, executables } from "../../conformance/plugin.ts";
import { AgentHome, type AgentProcess, networkName } from "../../support/agent-process.ts";
import { type AgreementOptions, disagreements } from "../../support/agreement.ts";
import { type Running, startCommand } from "../../support/cni-call.ts";
import { PrivateNode } from "../../support/private-node.ts";
import { strayElements, strayFiles, strayLinks } from "./leftovers.ts";
import {
  ConfigurationList,
  configurationFor,
  deadlinesOf,
  gatewaysOf,
  outcomeOf,
  type PodVerb,
  podVariables,
  previousOf,
  validAttachments,
} from "./runtime-call.ts";
import { SteppedClock } from "./stepped-clock.ts";
import {
  type Holdings,
  type StressKind,
  type StressNode,
  type StressOutcome,
  type StressPod,
  type StressVerb,
  withAgent,
} from "./stress-node.ts";

const bridge = "pipette0";
const ownOfBridge = { kind: "bridge", links: ["lo", bridge] } as const;
const leasesProgram = new URL("leases-program.ts", import.meta.url).pathname;

/** What is in force for one pod, and where its packets are counted. */
const ofPolicedPod = /^\t(chain (from|to)|counter denied-(from|to))-/;

const logLines = 60;

export interface BridgeNodeOptions {
  /** Of the network "pods". Default: room for 65,000 pods in both families. */
  readonly subnets?: readonly string[];
  /** Keys of agent.yaml, to add or to replace. */
  readonly agent?: Readonly<Record<string, unknown>>;
  /** Keys that an administrator adds to the plugin's configuration. */
  readonly plugin?: { readonly addTimeoutMs?: number; readonly delTimeoutMs?: number };
  /** Gives the data directory a file system of its own, of this size, as the node sees it. */
  readonly dataDirMb?: number;
  /** Sweeping goes on behind the answers, and what an agent finds at its start takes a moment too. Default: 20 seconds. */
  readonly agreesWithinMs?: number;
  /** Where the executables lie. Default: those of this tree, compiled where they are not. */
  readonly executables?: string;
  /** Agent and plugins live by a clock of their own, which can be stepped. Needs gcc. */
  readonly clock?: true;
}

/** A machine inside the machine with the kernel bridge, whose runtime is the test itself. */
export class BridgeNode implements StressNode {
  readonly kind: StressKind;
  readonly deadlineMs: Readonly<Record<StressVerb, number>>;
  readonly machine: PrivateNode;
  readonly home: AgentHome;
  readonly executables: string;
  /** More variables for the agents and plugins that are started from now on. */
  readonly env: Record<string, string> = {};
  #clock: SteppedClock | undefined;
  readonly #plugin: Readonly<Record<string, unknown>>;
  readonly #list: ConfigurationList;
  readonly #agreement: AgreementOptions;
  readonly #agreesWithinMs: number;
  #agent: AgentProcess | undefined;
  #running = false;
  #made = 0;
  /** As they are after the agent's first start: nothing may come to them later. */
  #tables: string | undefined;

  /** @param links the node's own, which are nobody's pod */
  protected constructor(
    machine: PrivateNode,
    options: BridgeNodeOptions,
    { kind, links }: { readonly kind: StressKind; readonly links: readonly string[] } = ownOfBridge,
  ) {
    this.kind = kind;
    const { subnets = ["10.92.0.0/16", "fd92::/64"], agent = {}, plugin = {} } = options;
    this.machine = machine;
    this.#agreesWithinMs = options.agreesWithinMs ?? 20_000;
    this.executables = options.executables ?? executables;
    this.#plugin = plugin;
    this.deadlineMs = deadlinesOf(plugin);
    const networks = [{ name: networkName, subnets, bridge, masquerade: true, hairpin: true }];
    this.home = new AgentHome({ networks, ...agent }, this.executables, machine.prefix, machine.directory);
    this.#list = new ConfigurationList(this.home.conflist);
    const fixed = { fixedLinks: links, fixedNamespaces: [] };
    this.#agreement = { node: machine, home: this.home, executables: this.executables, env: this.env, ...fixed };
  }

  /** The agent does not run yet. */
  static async make(options: BridgeNodeOptions = {}): Promise<BridgeNode> {
    if (options.executables === undefined) compileExecutables();
    const node = new BridgeNode(await PrivateNode.start(), options);
    await node.equip(options);
    return node;
  }

  /** What the options ask for beside an agent. */
  protected async equip({ clock, dataDirMb }: BridgeNodeOptions): Promise<void> {
    if (clock) {
      this.#clock = await SteppedClock.make(this.machine.directory);
      Object.assign(this.env, this.#clock.env);
    }
    if (dataDirMb === undefined) return;
    const { dataDir } = this.home;
    mkdirSync(dataDir, { mode: 0o700 });
    await this.machine.run(`mount -t tmpfs -o mode=700,size=${dataDirMb}m data ${dataDir}`);
  }

  /** With an agent that is ready. */
  static async start(options: BridgeNodeOptions = {}): Promise<BridgeNode> {
    return withAgent(await BridgeNode.make(options));
  }

  async makePod(): Promise<StressPod> {
    const number = ++this.#made;
    const name = `cni-${number}`;
    await this.machine.run(`ip netns add ${name}`);
    // As long as containerd's, and each another one from its first letter on: interfaces are named after the start.
    const containerId = Bun.SHA256.hash(`${process.pid} ${number}`, "hex");
    const netns = `/run/netns/${name}`;
    return { network: networkName, containerId, ifname: "eth0", netns, addresses: [], result: undefined };
  }

  async removePod({ netns }: StressPod): Promise<void> {
    // A fault may have taken it already.
    const name = netns.slice(netns.lastIndexOf("/") + 1);
    await this.machine.run(`ip netns del ${name}`).catch(() => this.machine.runWords(["rm", "-f", netns]));
  }

  async call(verb: PodVerb, pod: StressPod): Promise<StressOutcome> {
    return outcomeOf(await this.startCall(verb, pod).ended);
  }

  /**
   * The same for those who have something to do to the plugin while it runs.
   * @param prefix what stands before the plugin on its command line, as `strace` does
   */
  startCall(verb: PodVerb, pod: StressPod, prefix: readonly string[] = []): Running {
    return this.#start(podVariables(verb, pod, this.executables), previousOf(verb, pod), prefix);
  }

  async gc(keep: readonly StressPod[], prefix: readonly string[] = []): Promise<StressOutcome> {
    const variables = { CNI_COMMAND: "GC", CNI_PATH: this.executables };
    return outcomeOf(await this.#start(variables, validAttachments(keep), prefix).ended);
  }

  async status(prefix: readonly string[] = []): Promise<StressOutcome> {
    return outcomeOf(await this.#start({ CNI_COMMAND: "STATUS", CNI_PATH: this.executables }, {}, prefix).ended);
  }

  async problems(): Promise<readonly string[]> {
    const words = [join(this.executables, "pipette"), "status", "--json", "--socket", this.home.socket];
    const { stdout, stderr } = await startCommand([...this.machine.prefix, ...words], this.env, "").ended;
    if (stdout === "") return [stderr];
    const { status }: { readonly status: StatusResponse } = JSON.parse(stdout);
    return status.problems.map(({ message }) => message);
  }

  #start(
    variables: Readonly<Record<string, string>>,
    keys: Readonly<Record<string, unknown>>,
    prefix: readonly string[] = [],
  ): Running {
    const configuration = configurationFor(this.#list.read(), { ...this.#plugin, ...keys });
    const command = [...this.machine.prefix, ...prefix, join(this.executables, "pipette")];
    return startCommand(command, { ...variables, ...this.env }, JSON.stringify(configuration));
  }

  async startAgent(): Promise<void> {
    const agent = this.home.spawn(this.env);
    this.#agent = agent;
    this.#running = true;
    void agent.ended().then(() => {
      if (this.#agent === agent) this.#running = false;
    });
    await agent.logged((line) => line["message"] === "ready");
    this.#tables ??= await this.#rules();
  }

  async endAgent(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (this.#running) await this.agent.end(signal);
    this.#running = false;
  }

  freezeAgent(): void {
    this.agent.signal("SIGSTOP");
  }

  thawAgent(): void {
    this.agent.signal("SIGCONT");
  }

  agentRuns(): boolean {
    return this.#running;
  }

  /** That agent and plugins live by. */
  get clock(): SteppedClock {
    if (this.#clock === undefined)
      throw new Error("Cannot set the clock: it is everybody's, wanted one of the node's own");
    return this.#clock;
  }

  /** The one that runs, or ran last. */
  get agent(): AgentProcess {
    if (this.#agent === undefined) throw new Error("Cannot ask the agent: none has been started, wanted one");
    return this.#agent;
  }

  /** Both families, at the same time. */
  async reaches({ netns, result }: StressPod): Promise<boolean> {
    const answers = await Promise.all(gatewaysOf(result).map((gateway) => this.machine.ping(netns, gateway)));
    return answers.length > 0 && answers.every(Boolean);
  }

  async disagreements(pods: readonly StressPod[]): Promise<readonly string[]> {
    const until = performance.now() + this.#agreesWithinMs;
    for (;;) {
      const all = [...(await disagreements(this.#agreement, pods)), ...(await this.#leftovers(pods))];
      const found = all.filter((line) => !this.isExplained(line));
      if (found.length === 0 || performance.now() > until) return found;
      await Bun.sleep(100);
    }
  }

  /** Whether what disagrees has a reason that is none of the agent's. */
  protected isExplained(line: string): boolean {
    return this.#clock?.explains(line) === true;
  }

  async #leftovers(pods: readonly StressPod[]): Promise<readonly string[]> {
    const lines = async (command: string): Promise<readonly string[]> => (await this.machine.run(command)).split("\n");
    const links: { readonly ifname: string }[] = JSON.parse(await this.machine.run("ip -j link"));
    const names = links.map(({ ifname }) => ifname);
    const rules = await this.#rules();
    return [
      ...(await this.#brokenLeases()),
      ...(await this.#strayPlugins()),
      // Through the node: something may be mounted over it there.
      ...strayFiles(await lines(`ls -A ${this.home.dataDir}`)),
      ...strayLinks(names, this.#agreement.fixedLinks, pods.length),
      ...(await this.strayElements(pods)),
      ...(rules === this.#tables ? [] : [`the node's packet rules are ${rules}, wanted ${this.#tables}`]),
    ];
  }

  /** Read without the product, whose own check would share its mistakes. */
  async #brokenLeases(): Promise<readonly string[]> {
    const words = [process.execPath, leasesProgram, join(this.home.dataDir, "leases.db")];
    // Locked for a moment, or for good: whoever asks looks again.
    return this.machine
      .runWords(words)
      .then(JSON.parse, (caught: Error) => [`the leases cannot be read: ${caught.message}`]);
  }

  /** Their runtime waits for none at the moment: one that still runs was left, or hangs. */
  async #strayPlugins(): Promise<readonly string[]> {
    const names = await this.machine.runWords(["sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null || true"]);
    const plugins = names.split("\n").filter((name) => name === "pipette").length - (this.#running ? 1 : 0);
    return plugins === 0 ? [] : [`${plugins} plugins still run, wanted none`];
  }

  /**
   * Without the elements of sets, and the chains and counters of policies, which come and go with pods, and in one order,
   * whichever of them was made first.
   */
  async #rules(): Promise<string> {
    const ruleset = await this.machine.run("nft --stateless --terse list ruleset");
    const tables = ruleset.split(/^(?=table )/m).map((table) => table.split(/^(?=\t(?:set|map|chain|counter) |\})/m));
    return tables
      .map(([table, ...parts]) =>
        [
          table,
          ...parts
            .filter((part) => !ofPolicedPod.test(part))
            .map((part) => part.trimEnd())
            .sort(),
        ].join("\n"),
      )
      .join("\n");
  }

  /** On a kernel bridge the packet rules know each pod's port and addresses. */
  protected async strayElements(pods: readonly StressPod[]): Promise<readonly string[]> {
    if (this.kind !== "bridge") return [];
    const elements = (set: string): Promise<number> => this.elementsOf("set", set);
    const addresses = (family: 4 | 6): number =>
      pods.flatMap((pod) => pod.addresses).filter((address) => address.includes(":") === (family === 6)).length;
    return strayElements(
      new Map([
        ["ports", [await elements(`bridge pipette-${bridge} ports`), pods.length]],
        ["IPv4 addresses", [await elements(`inet pipette-${bridge} pods4`), addresses(4)]],
        ["IPv6 addresses", [await elements(`inet pipette-${bridge} pods6`), addresses(6)]],
      ]),
    );
  }

  /** Of a set or map by its place; none where there is no such one. */
  protected async elementsOf(kind: "set" | "map", place: string): Promise<number> {
    const said = await this.machine.run(`nft -j list ${kind} ${place}`).catch(() => "{}");
    const { nftables = [] }: { nftables?: Record<string, { elem?: readonly unknown[] }>[] } = JSON.parse(said);
    return nftables.find((each) => each[kind] !== undefined)?.[kind]?.elem?.length ?? 0;
  }

  holdings(): Holdings {
    const { pid } = this.agent;
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    return { pid, residentMb: field("VmRSS") / 1024, descriptors, threads: field("Threads") };
  }

  async databaseBytes(): Promise<number> {
    const sizes = await this.machine.run(`find ${this.home.dataDir} -name leases.db* -printf %s\\n`);
    return sizes.split("\n").reduce((sum, size) => sum + Number(size), 0);
  }

  agentLog(): readonly string[] {
    return (this.#agent?.stderr ?? "").trimEnd().split("\n").slice(-logLines);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
    await this.machine[Symbol.asyncDispose]();
  }
}
