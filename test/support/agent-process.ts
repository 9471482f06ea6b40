import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Allocator } from "../../ipam/mod.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import type { CniCmdResponse } from "../../shared/proto/cni-messages.ts";
import type { StatusResponse } from "../../shared/proto/pipette-messages.ts";
import { callTimes, cniService, type Method, nodeService } from "../../shared/proto/services.ts";
import { callUnary } from "../../shared/rpc/call.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import { eventually } from "./eventually.ts";
import { freeze } from "./freeze.ts";
import { innerProcess } from "./inner-process.ts";
import { ownProgram } from "./own-program.ts";

export { eventually };

/** The bridge of every agent under test: each has a network namespace of its own. */
export const bridgeName = "ptd0";
export const networkName = "pods";

export interface CmdOptions {
  readonly netns?: string;
  readonly ifname?: string;
  readonly args?: string;
  /** Keys to add to the configuration, or to replace. */
  readonly conf?: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number;
}

/** One line of an agent's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A directory with everything that one agent needs; the agent itself may be started in it again and again. */
export class AgentHome implements AsyncDisposable {
  readonly directory: string;
  readonly socket: string;
  readonly dataDir: string;
  readonly conflist: string;
  /** A test may put it elsewhere before it starts an agent. */
  configFile: string;
  readonly #running = new Set<AgentProcess>();
  #config: Readonly<Record<string, unknown>>;
  /** Starts `pipette`; its arguments follow. */
  readonly command: readonly string[];

  /**
   * @param changes keys of `agent.yaml`
   * @param executables directory of the compiled executables; where it is not given, what tests start at all
   * @param prefix what stands first on the command line, to start the agent in another place: `["nsenter", …]`
   * @param parent where the directory is made
   */
  constructor(
    changes: Readonly<Record<string, unknown>> = {},
    executables?: string,
    prefix: readonly string[] = [],
    parent = tmpdir(),
  ) {
    this.directory = mkdtempSync(join(parent, "pipette-agent-"));
    this.socket = join(this.directory, "run", "cni.sock");
    this.dataDir = join(this.directory, "data");
    this.conflist = join(this.directory, "net.d", "10-pipette.conflist");
    this.configFile = join(this.directory, "agent.yaml");
    const program = executables === undefined ? ownProgram : [join(executables, "pipette")];
    this.command = [...prefix, ...program];
    const config = {
      socket: this.socket,
      dataDir: this.dataDir,
      networks: [{ name: networkName, subnets: ["10.78.0.0/16", "fd78::/64"], bridge: bridgeName, masquerade: false }],
      janitorIntervalMs: 200,
      ...changes,
      // Whether others are chained is a matter of where the executables lie.
      cni: { confDir: join(this.directory, "net.d"), plugins: [], ...(isObject(changes["cni"]) ? changes["cni"] : {}) },
    };
    this.#config = config;
    this.change({});
  }

  /** Keys of `agent.yaml` for the agents that start from now on; `undefined` takes one out. */
  change(keys: Readonly<Record<string, unknown>>): void {
    this.#config = { ...this.#config, ...keys };
    // JSON is YAML too.
    writeFileSync(this.configFile, JSON.stringify(this.#config, null, 2));
  }

  /** Starts an agent and waits until it says that it is ready. */
  async start(env: Readonly<Record<string, string>> = {}, more: readonly string[] = []): Promise<AgentProcess> {
    const agent = this.spawn(env, more);
    await agent.logged((line) => line["message"] === "ready");
    return agent;
  }

  /** @param more options of `pipette agent` */
  spawn(env: Readonly<Record<string, string>> = {}, more: readonly string[] = []): AgentProcess {
    const agent = new AgentProcess([...this.command, "agent", "--config", this.configFile, ...more], env);
    this.#running.add(agent);
    return agent;
  }

  /** A CmdAdd, CmdCheck or CmdDel for `containerId`. */
  cmd(verb: keyof typeof cniService, containerId: string, options: CmdOptions = {}): Promise<CniCmdResponse> {
    const conf = { cniVersion: "1.0.0", name: networkName, type: "pipette", ...options.conf };
    const cniArgs = {
      containerId,
      netns: options.netns ?? "",
      ifname: options.ifname ?? "eth0",
      args: options.args ?? "",
      path: "",
      networkConfiguration: new TextEncoder().encode(JSON.stringify(conf)),
    };
    return this.call(cniService[verb], { cniArgs }, options.timeoutMs);
  }

  /** As our plugin calls. */
  call<Req, Res>(method: Method<Req, Res>, request: Req, timeoutMs = 20_000): Promise<Res> {
    const now = uptimeMs() ?? 0;
    const metadata = { [callTimes.startedMs]: String(now), [callTimes.untilMs]: String(now + timeoutMs) };
    return callUnary(this.socket, method, request, { timeoutMs, metadata });
  }

  status(): Promise<StatusResponse> {
    return this.call(nodeService.status, { network: "" });
  }

  /** The interfaces that the agent lists: container ids, sorted. */
  async containers(): Promise<string[]> {
    const { interfaces } = await this.call(nodeService.listInterfaces, {});
    return interfaces.map((entry) => entry.containerId).sort();
  }

  /** The store, as another process sees it. */
  store(): Promise<Allocator> {
    return Allocator.open(this.dataDir);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#running) await agent.end("SIGKILL");
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** One process of `pipette`, with its output collected. */
export class AgentProcess {
  readonly lines: LogLine[] = [];
  stdout = "";
  stderr = "";
  #unfinished = "";
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #read: Promise<unknown>;

  constructor(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#child = Bun.spawn([...command], {
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#read = Promise.all([
      each(this.#child.stdout, (text) => {
        this.stdout += text;
      }),
      each(this.#child.stderr, (text) => this.#take(text)),
    ]);
  }

  get pid(): number {
    return innerProcess(this.#child.pid);
  }

  /** Exit status once it has ended by itself; output is complete then. */
  async ended(): Promise<number> {
    const status = await this.#child.exited;
    await this.#read;
    return status;
  }

  /** A process that has ended already gets no signal. */
  signal(name: NodeJS.Signals): void {
    if (!existsSync(`/proc/${this.#child.pid}`)) return;
    process.kill(this.pid, name);
    // `nsenter` stops with its child, and has to be continued too.
    if (name !== "SIGSTOP") this.#child.kill("SIGCONT");
  }

  /** It does nothing until this is disposed of: what is taken away meanwhile, it cannot put back before anybody looks. */
  async held(): Promise<Disposable> {
    await freeze(this);
    return { [Symbol.dispose]: () => this.signal("SIGCONT") };
  }

  /** Sends the signal and waits for the end. */
  async end(name: NodeJS.Signals = "SIGTERM"): Promise<number> {
    this.signal(name);
    return this.ended();
  }

  /** Waits for a line that `wanted` takes. */
  async logged(wanted: (line: LogLine) => boolean): Promise<LogLine> {
    return eventually(() => {
      const line = this.lines.find(wanted);
      const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null;
      if (line === undefined && hasEnded) throw new Error(`The agent has ended: ${this.stderr}`);
      return line;
    }, "the line in the agent's log");
  }

  /** Resident memory in MB. */
  residentMb(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  #take(text: string): void {
    this.stderr += text;
    // Only new lines are searched: a benchmark's agent writes a lot, and the search would disturb the measurement.
    const lines = (this.#unfinished + text).split("\n");
    this.#unfinished = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("{")) continue;
      const value: unknown = JSON.parse(line);
      if (isObject(value)) this.lines.push(value);
    }
  }
}

async function each(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    take(decoder.decode(value, { stream: true }));
  }
}

/** The result of a call that must have succeeded. */
export function resultOf(response: CniCmdResponse): {
  readonly ips: readonly { readonly address: string }[];
  readonly interfaces: readonly { readonly name: string; readonly mac: string; readonly sandbox?: string }[];
} {
  if (response.error !== undefined) throw new Error(`${response.error.code}: ${response.error.message}`);
  return JSON.parse(new TextDecoder().decode(response.cniResult));
}
