import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Allocator, type Lease } from "../../../ipam/mod.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { createNamespace } from "../../fakes/hns/namespaces.ts";
import type { KindAnswer, KindVerb } from "../../support/container-kinds.ts";
import { brokenInvariants } from "../../support/invariants.ts";
import { NodeInMemory } from "../../windows-host/node-in-memory.ts";
import { deleteHnsNetwork, makeHnsNetwork } from "../../windows-host/node-state.ts";
import { Stubs } from "../stubs/stubs.ts";
import { executables, type WinePrefix } from "../wine/prefix.ts";
import type { Ended, Program } from "../wine/program.ts";

/** Longer than any test, and than a soak. */
const agentLivesMs = 24 * 3600_000;

let nodes = 0;

/** What a call of the plugin is made with, beside its verb and its container. */
export interface CniOptions {
  readonly netns?: string;
  readonly args?: string;
  readonly ifname?: string;
  /** CNI_PATH. */
  readonly path?: string;
  /** Keys to add to the network configuration, or to replace. */
  readonly conf?: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number;
}

/**
 * One Windows node: the compiled agent on a pipe and with a data directory of its own, HNS and the node's adapters as
 * our stubs and this process play them.
 */
export class WindowsNode implements AsyncDisposable {
  readonly prefix: WinePrefix;
  readonly stubs: Stubs;
  /** Adapters, addresses and routes, as PowerShell shows and changes them. */
  readonly host = new NodeInMemory();
  readonly dataDir: string;
  readonly socket: string;
  readonly configFile: string;
  /** Where those lie that run next, agent and plugin alike: the ones that are installed, and tested. */
  executables = executables;
  #agent: Program | undefined;

  private constructor(prefix: WinePrefix, stubs: Stubs) {
    nodes += 1;
    this.prefix = prefix;
    this.stubs = stubs;
    this.dataDir = `C:\\ProgramData\\pipette-${nodes}`;
    this.socket = `\\\\.\\pipe\\pipette-${nodes}`;
    this.configFile = `C:\\agent-${nodes}.yaml`;
  }

  static async make(prefix: WinePrefix): Promise<WindowsNode> {
    const node = new WindowsNode(prefix, await Stubs.serve(prefix));
    node.stubs.hns.store.adapters.add("Ethernet0");
    node.stubs.commands.answerWith = async ({ script }) => {
      node.#followHns();
      const { stdout, stderr, failure } = await node.host.execute(script);
      return { status: failure === "" ? 0 : 1, stdout, stderr };
    };
    return node;
  }

  /** A switch and its adapter come and go with their HNS network. */
  #followHns(): void {
    const { state } = this.host;
    const names = [...this.stubs.hns.store.networks.values()].map((network) => String(network["Name"]));
    const switches = state.switches.map((entry) => String(entry["Name"]));
    for (const name of names) if (!switches.includes(name)) makeHnsNetwork(state, name, true);
    for (const name of switches) if (!names.includes(name)) deleteHnsNetwork(state, name, true);
  }

  /** @param guid of the namespace, as a runtime makes one for a sandbox */
  addNamespace(guid: string): void {
    createNamespace(this.stubs.hns.store, guid.toUpperCase(), { SchemaVersion: { Major: 2, Minor: 0 } });
  }

  /**
   * Starts the agent; answers when it is ready.
   * @param changes keys of the network's `hns` section
   * @param more keys of the whole configuration
   */
  async start(changes: Readonly<Record<string, unknown>> = {}, more: object = {}): Promise<Program> {
    const hns = { nodeAddress: "192.168.1.5", ...changes };
    const config = {
      socket: this.socket,
      dataDir: this.dataDir,
      logLevel: "debug",
      cooldownMs: 0,
      janitorIntervalMs: 200,
      cni: { confDir: `${this.dataDir}-conf` },
      networks: [{ name: "pods", subnets: ["10.9.0.0/24"], bridge: "br-int", hns }],
      ...more,
    };
    // JSON is YAML.
    this.prefix.write(this.configFile, JSON.stringify(config));
    const args = ["agent", "--config", this.configFile];
    const agent = this.prefix.start(`${this.executables}/pipette.exe`, { args, timeoutMs: agentLivesMs });
    this.#agent = agent;
    await agent.saying('"message":"ready"');
    return agent;
  }

  /** Ends the agent as its service does; a kill where `kill` says so. */
  async stop(kill = false): Promise<Ended | undefined> {
    const agent = this.#agent;
    this.#agent = undefined;
    // A frozen one hears of nothing.
    if (agent !== undefined && !agent.hasEnded) process.kill(agent.pid, "SIGCONT");
    if (!kill) return agent?.stop();
    agent?.kill("SIGKILL");
    return agent?.ended;
  }

  /** Runs the plugin to its end. */
  run(verb: KindVerb, containerId: string, options: CniOptions = {}): Promise<Ended> {
    return this.startPlugin(verb, containerId, options).ended;
  }

  startPlugin(verb: KindVerb, containerId: string, options: CniOptions = {}): Program {
    const ipam = { type: "pipette-ipam", dataDir: this.dataDir, ranges: [[{ subnet: "10.9.0.0/24" }]], cooldownMs: 0 };
    const conf = {
      cniVersion: "1.0.0",
      name: "pods",
      type: "pipette",
      socket: this.socket,
      dataDir: this.dataDir,
      ipam,
    };
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: options.netns ?? "",
      CNI_IFNAME: options.ifname ?? "eth0",
      CNI_ARGS: options.args ?? "",
      CNI_PATH: options.path ?? "C:\\cni",
    };
    return this.execute(env, { ...conf, ...options.conf }, options.timeoutMs);
  }

  /** Starts the plugin with these variables and this network configuration. */
  execute(env: Readonly<Record<string, string>>, configuration: object, timeoutMs = 60_000): Program {
    return this.prefix.start(`${this.executables}/pipette.exe`, {
      env,
      stdin: JSON.stringify(configuration),
      timeoutMs,
    });
  }

  async cni(verb: KindVerb, containerId: string, options: CniOptions = {}): Promise<KindAnswer> {
    const { status, stdout, stderr } = await this.run(verb, containerId, options);
    if (status === 0) return { t: "ok", text: stdout };
    try {
      const { code, msg } = JSON.parse(stdout) as { code: number; msg: string };
      return { t: "error", code, message: msg };
    } catch {
      throw new Error(`${verb} of "${containerId}" ended with ${status}: ${stdout}${stderr}`);
    }
  }

  /** The leases as they are in the file. */
  leases(): Promise<readonly Lease[]> {
    return this.#onCopy(async (copy) => {
      using allocator = await Allocator.open(copy);
      return allocator.list();
    });
  }

  /** Wine's locks are not those of this system, so nobody of this system may open the file itself. */
  async #onCopy<T>(read: (directory: string) => Promise<T> | T): Promise<T> {
    const copy = mkdtempSync(join(tmpdir(), "pipette-leases-"));
    try {
      for (const file of ["leases.db", "leases.db-wal"]) {
        const path = this.prefix.unixPath(`${this.dataDir}\\${file}`);
        if (existsSync(path)) cpSync(path, join(copy, file));
      }
      return await read(copy);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }

  /**
   * What does not agree, once nothing is under way any more: leases, HNS' documents, handles, the database. Waits for
   * the janitor.
   */
  async disagreements(withinMs = 30_000): Promise<readonly string[]> {
    const untilMs = performance.now() + withinMs;
    for (;;) {
      const found = await this.#disagreements();
      if (found.length === 0 || performance.now() > untilMs) return found;
      await Bun.sleep(200);
    }
  }

  async #disagreements(): Promise<string[]> {
    const leases = await this.leases();
    const leased = leases.filter(({ state }) => state === "allocated").map(({ address }) => formatIp(address.ip));
    const standing = this.endpoints().flatMap(addressesOf);
    const database = await this.#onCopy((copy) => brokenInvariants(join(copy, "leases.db")));
    return [
      ...leases.filter(({ state }) => state === "releasing").map(({ owner }) => `"${owner.sandboxId}" is releasing`),
      ...leased.filter((address) => !standing.includes(address)).map((address) => `${address} has no endpoint`),
      ...standing.filter((address) => !leased.includes(address)).map((address) => `${address} has no lease`),
      ...standing.filter((address, i) => standing.indexOf(address) !== i).map((address) => `${address} is there twice`),
      ...this.stubs.hns.handles.list().map((handle) => `${handle} is open`),
      ...database,
    ];
  }

  /** Documents of the endpoints that stand. */
  endpoints(): readonly Readonly<Record<string, unknown>>[] {
    return [...this.stubs.hns.store.endpoints.values()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.stubs[Symbol.asyncDispose]();
  }
}

/** The addresses of an endpoint's document. */
export const addressesOf = (endpoint: Readonly<Record<string, unknown>>): readonly string[] => {
  const listed = endpoint["IpConfigurations"];
  return (Array.isArray(listed) ? listed : []).map(({ IpAddress }) => String(IpAddress));
};
