import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compileExecutables, debianPlugins, executables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { PrivateNode } from "../support/private-node.ts";
import { Containerd } from "./containerd.ts";
import { containerConfig, linuxPod, type ManifestContainer, type ManifestPod } from "./manifest-pod.ts";

/** What stands for the image: the executable, and a system with `nft` and the libraries of both. */
const image = [
  ...["/usr", "/lib", "/lib64"].map((path) => ({ container_path: path, host_path: path })),
  { container_path: "/pipette", host_path: join(executables, "pipette") },
];

/** A node with containerd whose agent runs in a container with the rights that the DaemonSet asks for, and no others. */
export class ConfinedNode implements AsyncDisposable {
  readonly node: PrivateNode;
  readonly containerd: Containerd;
  readonly pod: ManifestPod;
  /** The agent's container. */
  agent = "";
  readonly #sandbox: string;
  #attempts = 0;

  private constructor(node: PrivateNode, containerd: Containerd, pod: ManifestPod, sandbox: string) {
    this.node = node;
    this.containerd = containerd;
    this.pod = pod;
    this.#sandbox = sandbox;
  }

  static async start(): Promise<ConfinedNode> {
    compileExecutables();
    const pod = linuxPod();
    const node = await PrivateNode.start();
    try {
      // As systemd has it; volumes that follow the host's mounts need it.
      await node.run("mount --make-rshared /");
      await node.run("ip link add uplink type veth peer name other");
      await node.run("ip addr add 192.0.2.1/24 dev uplink");
      for (const name of ["uplink", "other"]) await node.run(`ip link set ${name} up`);
      for (const { hostPath } of pod.volumes) await node.run(`mkdir -p ${placeOf(node, hostPath.path)}`);
      const pluginDir = placeOf(node, "/opt/cni/bin");
      for (const name of ["loopback", "portmap"]) symlinkSync(join(debianPlugins, name), join(pluginDir, name));
      const containerd = await Containerd.start(node, { pluginDir, confDir: placeOf(node, "/etc/cni/net.d") });
      const sandbox = await containerd.cri.runPod("agent", {
        hostNetwork: pod.hostNetwork === true,
        logDirectory: node.directory,
      });
      return new ConfinedNode(node, containerd, pod, sandbox);
    } catch (caught) {
      await node[Symbol.asyncDispose]();
      throw caught;
    }
  }

  get cri() {
    return this.containerd.cri;
  }

  /** The agent's container as the manifest has it. */
  get container(): ManifestContainer {
    const [container] = this.pod.containers;
    if (container === undefined) throw new Error("The DaemonSet has no container");
    return container;
  }

  /** Runs the init containers one after the other. @returns what each said */
  async install(): Promise<readonly string[]> {
    const said: string[] = [];
    for (const container of this.pod.initContainers) {
      const id = await this.#run(container, []);
      const ended = async () => {
        const { state, exitCode } = await this.cri.containerStatus(id);
        return state === "CONTAINER_EXITED" && { exitCode };
      };
      const { exitCode } = await eventually(ended, `the end of "${container.name}"`);
      said.push(`${exitCode}: ${this.#log(container.name)}`);
    }
    return said;
  }

  /**
   * Starts the agent.
   * @param config agent.yaml
   * @param more directories of the node that this configuration needs besides
   * @returns "ready", or its last word
   */
  async startAgent(config: object, container = this.container, more: readonly string[] = []): Promise<string> {
    writeFileSync(join(placeOf(this.node, "/etc/pipette"), "agent.yaml"), JSON.stringify(config));
    rmSync(join(placeOf(this.node, "/etc/cni/net.d"), "10-pipette.conflist"), { force: true });
    this.agent = await this.#run(container, more);
    return eventually(async () => {
      const log = this.agentLog();
      if (log.includes('"message":"ready"')) return "ready";
      return (await this.cri.containerStatus(this.agent)).state === "CONTAINER_EXITED" && log;
    }, "the agent");
  }

  /** Of the agent that was started last. */
  agentLog(): string {
    return this.#log(this.container.name);
  }

  async endAgent(): Promise<void> {
    await this.cri.endContainer(this.agent, this.pod.terminationGracePeriodSeconds);
  }

  /** What the kernel says of the agent's process: its capabilities as a mask, and so on. */
  async agentStatus(): Promise<ReadonlyMap<string, string>> {
    const { pid } = await this.cri.containerStatus(this.agent);
    const text = await this.node.run(`cat /proc/${pid}/status`);
    return new Map([...text.matchAll(/^(\w+):\s*(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of (await this.cri.pods()).keys()) await this.cri.endPod(id).catch(() => undefined);
    await this.containerd[Symbol.asyncDispose]();
    await this.node[Symbol.asyncDispose]();
  }

  #run(container: ManifestContainer, more: readonly string[]): Promise<string> {
    const placed = { hostPath: (path: string) => placeOf(this.node, path), image };
    const config = containerConfig(this.pod, container, ++this.#attempts, placed);
    const mounts = more.map((path) => ({ container_path: path, host_path: path }));
    return this.cri.startConfigured(this.#sandbox, { ...config, mounts: [...config.mounts, ...mounts] });
  }

  #log(name: string): string {
    return readFileSync(`${this.node.directory}/${name}-${this.#attempts}.log`, "utf8");
  }
}

/** The node has /run and /var/lib of its own; what it would share with the machine is elsewhere. */
const placeOf = ({ directory }: PrivateNode, path: string): string =>
  /^\/(etc|opt)\//.test(path) ? join(directory, path.replaceAll("/", "_")) : path;
