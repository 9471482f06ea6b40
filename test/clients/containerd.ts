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
  /** Directory of another containerd than Debian's, with its shim and `ctr`. */
  readonly programs?: string;
}

/** A containerd in a node of its own, driven as the kubelet does it. */
export class Containerd implements AsyncDisposable {
  readonly cri: CriClient;
  readonly #node: PrivateNode;
  readonly programs: string;
  /** Path of its socket, inside and outside alike. */
  readonly socket: string;
  #process: Bun.Subprocess | undefined;

  private constructor(node: PrivateNode, programs: string) {
    this.#node = node;
    this.programs = programs;
    this.socket = join(node.directory, "containerd.sock");
    this.cri = new CriClient(this.socket, node.cgroup);
  }

  static async start(node: PrivateNode, places: ContainerdPlaces): Promise<Containerd> {
    const containerd = new Containerd(node, places.programs ?? "/usr/bin");
    writeFileSync(join(node.directory, "containerd.toml"), configText(node, places));
    const images = await makeImages(node.directory);
    await containerd.restart();
    for (const path of [images.pause, images.busybox]) await containerd.importImage(path);
    return containerd;
  }

  /** Takes an image from an archive, an OCI layout, as somebody does it on a node that no registry is reached from. */
  async importImage(archive: string): Promise<void> {
    await this.#node.run(`${this.programs}/ctr -a ${this.socket} -n k8s.io images import ${archive}`);
  }

  /** Starts it (again) and waits until it answers. */
  async restart(): Promise<void> {
    const configFile = join(this.#node.directory, "containerd.toml");
    const command = [...this.#node.prefix, `${this.programs}/containerd`, "-c", configFile];
    const log = openSync(this.#logFile, "a");
    // The shim is looked for there.
    const env = { ...process.env, PATH: `${this.programs}:${process.env["PATH"]}` };
    this.#process = Bun.spawn(command, { env, stdin: "ignore", stdout: log, stderr: log });
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
