import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compileExecutables, debianPlugins, executables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { PrivateNode } from "../support/private-node.ts";
import { Containerd } from "./containerd.ts";
import { containerConfig, daemonPod, type ManifestContainer, type ManifestPod, volumePath } from "./manifest-pod.ts";

/** What stands for the image: the executable, and a system with `nft` and the libraries of both. */
const standIn = [
  ...["/usr", "/lib", "/lib64", "/etc/alternatives"].map((path) => ({ container_path: path, host_path: path })),
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
  /** Names of the images that containers have; machine's files stand for others. */
  readonly #images: ReadonlySet<string>;
  #attempts = 0;

  private constructor(
    node: PrivateNode,
    containerd: Containerd,
    {
      pod,
      sandbox,
      images,
    }: {
      readonly pod: ManifestPod;
      readonly sandbox: string;
      readonly images: ReadonlySet<string>;
    },
  ) {
    this.node = node;
    this.containerd = containerd;
    this.pod = pod;
    this.#sandbox = sandbox;
    this.#images = images;
  }

  /**
   * @param pod of the agent; other pods find their volumes too
   * @param archives of images, by the names that manifests have for them; this machine's own files stand for others
   */
  static async start({
    pod = daemonPod("pipette.yaml", "pipette-agent"),
    archives = {},
  }: {
    readonly pod?: ManifestPod;
    readonly archives?: Readonly<Record<string, string>>;
  } = {}): Promise<ConfinedNode> {
    compileExecutables();
    const node = await PrivateNode.start();
    try {
      // As systemd has it; volumes that follow the host's mounts need it.
      await node.run("mount --make-rshared /");
      await node.run("ip link add uplink type veth peer name other");
      await node.run("ip addr add 192.0.2.1/24 dev uplink");
      for (const name of ["uplink", "other"]) await node.run(`ip link set ${name} up`);
      await makeVolumes(node, pod);
      const pluginDir = placeOf(node, "/opt/cni/bin");
      // Copies: what a link leads to is not in the agent's image.
      for (const name of ["loopback", "portmap"]) copyFileSync(join(debianPlugins, name), join(pluginDir, name));
      const containerd = await Containerd.start(node, { pluginDir, confDir: placeOf(node, "/etc/cni/net.d") });
      for (const archive of Object.values(archives)) await containerd.importImage(archive);
      const sandbox = await containerd.cri.runPod("agent", {
        hostNetwork: pod.hostNetwork === true,
        logDirectory: node.directory,
      });
      return new ConfinedNode(node, containerd, { pod, sandbox, images: new Set(Object.keys(archives)) });
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

  /** Runs the init containers one after the other. @returns how each ended, and what it said */
  async install(pod = this.pod): Promise<readonly string[]> {
    await makeVolumes(this.node, pod);
    const said: string[] = [];
    for (const container of pod.initContainers) {
      const id = await this.#run(container, [], pod);
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
    this.configure(config);
    rmSync(join(placeOf(this.node, "/etc/cni/net.d"), "10-pipette.conflist"), { force: true });
    this.agent = await this.#run(container, more);
    return eventually(async () => {
      const log = this.agentLog();
      if (log.includes('"message":"ready"')) return "ready";
      return (await this.cri.containerStatus(this.agent)).state === "CONTAINER_EXITED" && log;
    }, "the agent");
  }

  /** Puts agent.yaml where the kubelet has the ConfigMap. */
  configure(config: object): void {
    writeFileSync(join(placeOf(this.node, "/etc/kubelet-volumes/pipette-agent"), "agent.yaml"), JSON.stringify(config));
  }

  /** Starts a container of a pod beside the agent's. @returns its id, and its log so far */
  async startBeside(pod: ManifestPod, name: string): Promise<{ readonly id: string; log(): string }> {
    const container = pod.containers.find((each) => each.name === name);
    if (container === undefined) throw new Error(`The pod has no container "${name}"`);
    const id = await this.#run(container, [], pod);
    const log = `${name}-${this.#attempts}.log`;
    return { id, log: () => readFileSync(join(this.node.directory, log), "utf8") };
  }

  /** Where a path of a manifest is on this node. */
  placeOf(path: string): string {
    return placeOf(this.node, path);
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

  #run(container: ManifestContainer, more: readonly string[], pod = this.pod): Promise<string> {
    const hostPath = (path: string): string => placeOf(this.node, path);
    const placed = { hostPath, ...(this.#images.has(container.image) ? {} : { standIn }) };
    const config = containerConfig(pod, container, ++this.#attempts, placed);
    const mounts = more.map((path) => ({ container_path: path, host_path: path }));
    return this.cri.startConfigured(this.#sandbox, { ...config, mounts: [...config.mounts, ...mounts] });
  }

  #log(name: string): string {
    return readFileSync(`${this.node.directory}/${name}-${this.#attempts}.log`, "utf8");
  }
}

/** What a kubelet makes of "DirectoryOrCreate". */
async function makeVolumes(node: PrivateNode, { volumes }: ManifestPod): Promise<void> {
  const directories = volumes.filter(({ hostPath }) => hostPath?.type !== "CharDevice");
  for (const volume of directories) await node.run(`mkdir -p ${placeOf(node, volumePath(volume))}`);
}

/** The node has /run and /var/lib of its own; what it would share with the machine is elsewhere. */
const placeOf = ({ directory }: PrivateNode, path: string): string =>
  /^\/(etc|opt)\//.test(path) ? join(directory, path.replaceAll("/", "_")) : path;
