import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatIp } from "../../../shared/net/ip.ts";
import { deleteNamespace } from "../../fakes/hns/namespaces.ts";
import { addressesOf as addressesOfEndpoint, WindowsNode } from "../../windows/agent/windows-node.ts";
import { onDriveZ, WinePrefix } from "../../windows/wine/prefix.ts";
import type { Ended, Program } from "../../windows/wine/program.ts";
import { strayFiles } from "./leftovers.ts";
import {
  addressesOf,
  ConfigurationList,
  configurationFor,
  deadlinesOf,
  outcomeOf,
  type PodVerb,
  podVariables,
  previousOf,
  validAttachments,
} from "./runtime-call.ts";
import {
  type Holdings,
  type StressNode,
  type StressOutcome,
  type StressPod,
  type StressVerb,
  withAgent,
} from "./stress-node.ts";

const agreesWithinMs = 30_000;
const logLines = 60;
/** Beside what starting a process costs elsewhere: a Windows one under Wine takes a core some 200 ms, and many start at once. */
const startMs = 20_000;
/** What this data path keeps beside the leases: directories. */
const lasting = ["hns", "windows-host"];
const network = "pods";

export interface WindowsStressOptions {
  /** `inject("wineDirectory")` in a test; default: one of this node's own, which ends with it. */
  readonly runDirectory?: string;
  /** Keys of agent.yaml, to add or to replace. */
  readonly agent?: Readonly<Record<string, unknown>>;
  /** Keys that an administrator adds to the plugin's configuration. */
  readonly plugin?: { readonly addTimeoutMs?: number; readonly delTimeoutMs?: number };
}

/** A Windows node under Wine, on our stubs of HNS, whose runtime is the test itself. */
export class WindowsStressNode implements StressNode {
  readonly kind = "hns";
  readonly deadlineMs: Readonly<Record<StressVerb, number>>;
  readonly windows: WindowsNode;
  readonly #resources: AsyncDisposableStack;
  readonly #agent: Readonly<Record<string, unknown>>;
  readonly #plugin: Readonly<Record<string, unknown>>;
  readonly #list: ConfigurationList;
  /** Told of every plugin that starts. */
  onPlugin: (plugin: Program) => void = () => undefined;
  #runs = false;
  #made = 0;
  #log: Program | undefined;

  private constructor(windows: WindowsNode, resources: AsyncDisposableStack, options: WindowsStressOptions) {
    const { agent = {}, plugin = {} } = options;
    this.windows = windows;
    this.#resources = resources;
    this.#agent = { logLevel: "info", ...agent };
    this.#plugin = plugin;
    const entries = Object.entries(deadlinesOf(plugin)).map(([verb, ms]) => [verb, ms + startMs]);
    this.deadlineMs = Object.fromEntries(entries);
    this.#list = new ConfigurationList(windows.prefix.unixPath(`${windows.dataDir}-conf\\10-pipette.conflist`));
  }

  /** With an agent that is ready. */
  static async start(options: WindowsStressOptions = {}): Promise<WindowsStressNode> {
    await using resources = new AsyncDisposableStack();
    const directory = options.runDirectory ?? mkdtempSync(join(tmpdir(), "pipette-windows-"));
    if (options.runDirectory === undefined) resources.defer(() => rmSync(directory, { recursive: true, force: true }));
    const prefix = resources.use(await WinePrefix.make(directory));
    const windows = resources.use(await WindowsNode.make(prefix));
    return withAgent(new WindowsStressNode(windows, resources.move(), options));
  }

  async makePod(): Promise<StressPod> {
    const containerId = Bun.SHA256.hash(`${process.pid} ${++this.#made}`, "hex");
    const netns = this.windows.stubs.hns.newNamespace();
    return { network, containerId, ifname: "eth0", netns, addresses: [], result: undefined };
  }

  async removePod({ netns }: StressPod): Promise<void> {
    const { store } = this.windows.stubs.hns;
    // A fault may have taken it already.
    if (store.find("namespace", netns) !== undefined) deleteNamespace(store, netns);
  }

  call(verb: PodVerb, pod: StressPod): Promise<StressOutcome> {
    return outcome(this.startCall(verb, pod));
  }

  /** The same for those who have something to do to the plugin while it runs. */
  startCall(verb: PodVerb, pod: StressPod): Program {
    return this.#start(podVariables(verb, pod, "C:\\cni"), previousOf(verb, pod));
  }

  /** What a kubelet asks for each container of a pod, whose sandbox has its network. */
  callForContainer(verb: "ADD" | "DEL", pod: StressPod, name: string): Promise<StressOutcome> {
    const container = { ...pod, containerId: `${name}-${pod.containerId}`, netns: `container:${pod.containerId}` };
    return outcome(this.#start(podVariables(verb, container, "C:\\cni"), {}));
  }

  gc(keep: readonly StressPod[]): Promise<StressOutcome> {
    return outcome(this.#start({ CNI_COMMAND: "GC", CNI_PATH: "C:\\cni" }, validAttachments(keep)));
  }

  status(): Promise<StressOutcome> {
    return outcome(this.#start({ CNI_COMMAND: "STATUS", CNI_PATH: "C:\\cni" }, {}));
  }

  /** All of HNS' trouble is STATUS' too, and its disk is nobody's to fill. */
  async problems(): Promise<readonly string[]> {
    return [];
  }

  #start(variables: Readonly<Record<string, string>>, keys: Readonly<Record<string, unknown>>): Program {
    const configuration = configurationFor(this.#list.read(), { ...this.#plugin, ...keys });
    const plugin = this.windows.execute(variables, configuration);
    this.onPlugin(plugin);
    return plugin;
  }

  async startAgent(): Promise<void> {
    const agent = await this.windows.start({}, this.#agent);
    this.#log = agent;
    this.#runs = true;
    const over = (): void => {
      if (this.#log === agent) this.#runs = false;
    };
    void agent.ended.then(over, over);
  }

  async endAgent(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    await this.windows.stop(signal === "SIGKILL");
    this.#runs = false;
  }

  freezeAgent(): void {
    process.kill(this.agent.pid, "SIGSTOP");
  }

  thawAgent(): void {
    process.kill(this.agent.pid, "SIGCONT");
  }

  agentRuns(): boolean {
    return this.#runs;
  }

  /** The one that runs, or ran last. */
  get agent(): Program {
    if (this.#log === undefined) throw new Error("Cannot ask the agent: none has been started, wanted one");
    return this.#log;
  }

  /**
   * There are no packets under Wine: it says that HNS' documents have an endpoint in a network that stands, in the pod's
   * namespace, with all addresses that ADD answered.
   */
  async reaches({ netns, result }: StressPod): Promise<boolean> {
    const { store } = this.windows.stubs.hns;
    const wanted = addressesOf(result);
    const own = this.#endpointsIn(netns).filter((endpoint) =>
      store.find("network", textOf(endpoint, "HostComputeNetwork")),
    );
    return own.length === 1 && wanted.length > 0 && own.flatMap(addressesOfEndpoint).join() === wanted.join();
  }

  /** Those that the namespace lists, and that say so themselves. */
  #endpointsIn(netns: string): readonly Readonly<Record<string, unknown>>[] {
    const { store } = this.windows.stubs.hns;
    const listed = JSON.stringify(store.find("namespace", netns)?.["Resources"] ?? []).toLowerCase();
    return this.windows
      .endpoints()
      .filter((endpoint) => textOf(endpoint, "HostComputeNamespace").toLowerCase() === netns.toLowerCase())
      .filter((endpoint) => listed.includes(textOf(endpoint, "ID").toLowerCase()));
  }

  async disagreements(pods: readonly StressPod[]): Promise<readonly string[]> {
    const until = performance.now() + agreesWithinMs;
    for (;;) {
      const found = [...(await this.windows.disagreements(0)), ...(await this.#differences(pods))];
      if (found.length === 0 || performance.now() > until) return [...found, ...(await this.#diagnosis(pods))];
      await Bun.sleep(100);
    }
  }

  /** The runtime's list against leases and documents, and what ended processes left. */
  async #differences(pods: readonly StressPod[]): Promise<readonly string[]> {
    const leases = (await this.windows.leases()).filter(({ state }) => state === "allocated");
    const leased = leases.map(({ owner, address }) => `${owner.sandboxId.slice(0, 8)} has ${formatIp(address.ip)}`);
    const wanted = pods.flatMap(({ containerId, addresses }) =>
      addresses.map((ip) => `${containerId.slice(0, 8)} has ${ip}`),
    );
    const spaces = pods.map(({ netns }) => netns.toLowerCase());
    const stray = this.windows
      .endpoints()
      .filter((each) => !spaces.includes(textOf(each, "HostComputeNamespace").toLowerCase()));
    const { dataDir, prefix } = this.windows;
    const files = readdirSync(prefix.unixPath(dataDir)).filter((name) => !lasting.includes(name));
    const records = readdirSync(prefix.unixPath(`${dataDir}\\hns`)).filter((name) => name.endsWith(".tmp"));
    return [
      ...leased
        .filter((line) => !wanted.includes(line))
        .map((line) => `a lease says "${line}", and the runtime does not`),
      ...wanted.filter((line) => !leased.includes(line)).map((line) => `the runtime says "${line}", and no lease does`),
      ...stray.map((endpoint) => `endpoint "${textOf(endpoint, "Name")}" is in no pod's namespace`),
      ...strayFiles([...files, ...records]),
    ];
  }

  /** What users have: `pipette doctor`. */
  async #diagnosis(pods: readonly StressPod[]): Promise<readonly string[]> {
    const { prefix, configFile, executables } = this.windows;
    const list = join(prefix.directory, "runtime.json");
    writeFileSync(list, JSON.stringify(pods.map(({ containerId, ifname }) => ({ containerID: containerId, ifname }))));
    const args = ["doctor", "--config", configFile, "--runtime", onDriveZ(list), "--json"];
    const { stdout, stderr } = await prefix.run(`${executables}/pipette.exe`, { args });
    if (stdout === "") return [`the doctor cannot look: ${stderr}`];
    const report: { readonly findings: readonly { readonly code: string; readonly what: string }[] } =
      JSON.parse(stdout);
    return report.findings.map(({ code, what }) => `${code}: ${what}`);
  }

  holdings(): Holdings {
    const { pid } = this.agent;
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    return { pid, residentMb: field("VmRSS") / 1024, descriptors, threads: field("Threads") };
  }

  async databaseBytes(): Promise<number> {
    const directory = this.windows.prefix.unixPath(this.windows.dataDir);
    const files = readdirSync(directory).filter((name) => name.startsWith("leases.db"));
    return files.reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
  }

  agentLog(): readonly string[] {
    return (this.#log?.stderr ?? "").trimEnd().split("\n").slice(-logLines);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources[Symbol.asyncDispose]();
  }
}

/** What a call came to; one that had to be killed has died. */
async function outcome(plugin: Program): Promise<StressOutcome> {
  const from = performance.now();
  const ended: Ended | Error = await plugin.ended.catch((caught: Error) => caught);
  if (!(ended instanceof Error)) return outcomeOf(ended);
  return { t: "died", ms: performance.now() - from, how: ended.message };
}

const textOf = (document: Readonly<Record<string, unknown>>, key: string): string => String(document[key] ?? "");
