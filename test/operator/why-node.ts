import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { whyCommand } from "../../agent/commands/why/why-command.ts";
import type { CniCmdResponse } from "../../shared/proto/cni-messages.ts";
import { runAt } from "../fakes/terminal-run.ts";
import { AgentHome, type AgentProcess, bridgeName, type CmdOptions, networkName } from "../support/agent-process.ts";
import { startCommand } from "../support/cni-call.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { ownProgram } from "../support/own-program.ts";

/** What `pipette why --json` prints, and its exit status. */
export interface Told {
  readonly status: number;
  readonly result: string;
  readonly code: string;
  readonly cause: string;
  readonly evidence: readonly string[];
  readonly todo: readonly string[];
  readonly asked: readonly { readonly source: string; readonly failure?: string }[];
}

/** What stands before an agent's command line for it to see mounts of its own. @param script makes them */
export const inOwnMounts = (script: string): readonly string[] => {
  const unshare = ["unshare", "--mount", "--propagation", "private"];
  return [...unshare, "sh", "-c", `${script} && exec "$@"`, "sh"];
};

/** A node whose pods get no network for a cause that a test has planted, and the question why. */
export class WhyNode implements AsyncDisposable {
  readonly sandbox: NetworkSandbox;
  home: AgentHome;
  /** The agent whose log is read. */
  running: AgentProcess | undefined;
  #count = 0;
  readonly #pods: string[] = [];

  private constructor(sandbox: NetworkSandbox) {
    this.sandbox = sandbox;
    this.home = new AgentHome();
  }

  static async enter(): Promise<WhyNode> {
    return new WhyNode(await NetworkSandbox.enter("pt-why-"));
  }

  /** A new home, as for `AgentHome`. Nothing mends what is planted before somebody asks. */
  async make(changes: Readonly<Record<string, unknown>> = {}, prefix: readonly string[] = []): Promise<AgentHome> {
    await this.home[Symbol.asyncDispose]();
    this.home = new AgentHome({ janitorIntervalMs: 60_000, ...changes }, undefined, prefix);
    return this.home;
  }

  /** An agent in a new home, that is ready. */
  async start(changes: Readonly<Record<string, unknown>> = {}, prefix: readonly string[] = []): Promise<AgentProcess> {
    await this.make(changes, prefix);
    this.running = await this.home.start();
    return this.running;
  }

  /** What the runtime asks of the agent for the pod `shop/NAME`. */
  async add(
    name: string,
    options: CmdOptions = {},
  ): Promise<{ readonly id: string; readonly netns: string; readonly answer: CniCmdResponse }> {
    const id = `s${++this.#count}`;
    const netns = options.netns ?? (await this.sandbox.addPod(id));
    if (options.netns === undefined) this.#pods.push(netns);
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=u-${name}`;
    return { id, netns, answer: await this.home.cmd("cmdAdd", id, { args, ...options, netns }) };
  }

  /** `pipette why shop/NAME`, or without a name of the node. */
  async why(name: string | undefined, ...more: readonly string[]): Promise<Told> {
    const log = join(this.home.directory, "agent.log");
    writeFileSync(log, this.running?.stderr ?? "");
    const { socket, configFile } = this.home;
    const words = [...(name === undefined ? [] : [`shop/${name}`]), "--json", "--socket", socket, "--log", log];
    const { status, stdout, stderr } = await runAt(
      "pipette why",
      whyCommand,
      [...words, "--config", configFile, ...more],
      { env: { HOME: this.home.directory } },
    );
    expect(stderr).toBe("");
    return { status, ...JSON.parse(stdout) };
  }

  /** What the plugin itself says, as a pod's event has it. */
  async plugin(
    conf: object,
    { verb = "ADD", program = ownProgram }: { readonly verb?: string; readonly program?: readonly string[] } = {},
  ): Promise<string> {
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: "c9",
      CNI_NETNS: "/run/netns/none",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/",
    };
    const whole = {
      cniVersion: "1.0.0",
      name: networkName,
      type: "pipette",
      socket: this.home.socket,
      addTimeoutMs: 1_000,
      ...conf,
    };
    const { stdout } = await startCommand(program, env, JSON.stringify(whole)).ended;
    const { msg, details = "" } = JSON.parse(stdout) as { msg: string; details?: string };
    return `plugin type="pipette" failed (add): ${msg}; ${details}`;
  }

  /** Ends the agent and takes away what it has made; the node is as new. */
  async clear(): Promise<void> {
    this.running = undefined;
    await this.home[Symbol.asyncDispose]();
    // The next agent would take their interfaces for pods of its own.
    for (const pod of this.#pods.splice(0)) await this.sandbox.removePod(pod);
    await this.sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clear();
    await this.sandbox[Symbol.asyncDispose]();
  }
}
