import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/agent-process.ts";
import { innerProcess } from "../support/inner-process.ts";
import type { PrivateNode } from "../support/private-node.ts";
import { CriClient } from "./cri-client.ts";
import { makeImages, pauseImage } from "./images.ts";

/** What the containerd under test needs to know of the node. */
export interface ContainerdPlaces {
  readonly pluginDir: string;
  readonly confDir: string;
}

/** Debian's containerd in a node of its own, driven as the kubelet does it. */
export class Containerd implements AsyncDisposable {
  readonly cri: CriClient;
  readonly #node: PrivateNode;
  readonly #socket: string;
  #process: Bun.Subprocess | undefined;

  private constructor(node: PrivateNode) {
    this.#node = node;
    this.#socket = join(node.directory, "containerd.sock");
    this.cri = new CriClient(this.#socket, node.cgroup);
  }

  static async start(node: PrivateNode, places: ContainerdPlaces): Promise<Containerd> {
    const containerd = new Containerd(node);
    writeFileSync(join(node.directory, "containerd.toml"), configText(node, places));
    const images = await makeImages(node.directory);
    await containerd.restart();
    for (const path of [images.pause, images.busybox]) await containerd.importImage(path);
    return containerd;
  }

  /** Takes an image from an archive, as somebody does it on a node that no registry is reached from. */
  async importImage(path: string): Promise<void> {
    await this.#node.run(`ctr -a ${this.#socket} -n k8s.io images import ${path}`);
  }

  /** Starts it (again) and waits until it answers. */
  async restart(): Promise<void> {
    const [file = "", ...args] = [
      ...this.#node.prefix,
      "containerd",
      "-c",
      join(this.#node.directory, "containerd.toml"),
    ];
    const log = openSync(this.#logFile, "a");
    this.#process = Bun.spawn([file, ...args], { stdin: "ignore", stdout: log, stderr: log });
    closeSync(log);
    await eventually(async () => {
      if (this.#process?.exitCode !== null) throw new Error(`containerd has ended: ${this.log().slice(-2000)}`);
      return this.cri.pods().catch(() => undefined);
    }, "containerd's answer");
  }

  /** Ends the daemon alone: pods and their shims stay. */
  async kill(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (this.#process === undefined) return;
    if (this.#process.exitCode === null) process.kill(innerProcess(this.#process.pid), signal);
    // One that was stopped hears of its child's end only then.
    this.#process.kill("SIGCONT");
    await this.#process.exited;
  }

  /** Stops it where it is, or lets it go on. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    if (this.#process === undefined) return;
    process.kill(innerProcess(this.#process.pid), signal);
    // What it was started by stops with it, and has to go on with it.
    if (signal === "SIGCONT") this.#process.kill("SIGCONT");
  }

  log(): string {
    return readFileSync(this.#logFile, "utf8");
  }

  get #logFile(): string {
    return join(this.#node.directory, "containerd.log");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cri[Symbol.dispose]();
    await this.kill("SIGKILL");
  }
}

/** Without the right to lower oom_score_adj, as in many sandboxes, runc needs `restrict_oom_score_adj`. */
const configText = ({ directory }: PrivateNode, { pluginDir, confDir }: ContainerdPlaces): string => `version = 2
root = "${directory}/containerd/root"
state = "${directory}/containerd/state"
[grpc]
  address = "${directory}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "${directory}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${pluginDir}"
    conf_dir = "${confDir}"
    max_conf_num = 1
`;
