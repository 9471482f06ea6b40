import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PrivateNode } from "../support/private-node.ts";
import { busyboxImage, makeImages } from "./images.ts";

export interface PodmanPlaces {
  readonly pluginDir: string;
  readonly confDir: string;
}

export interface PodmanContainer {
  readonly id: string;
  readonly netns: string;
  /** Addresses by network. */
  readonly networks: ReadonlyMap<string, readonly string[]>;
}

interface Inspected {
  readonly Id: string;
  readonly NetworkSettings: {
    readonly SandboxKey: string;
    readonly Networks: Readonly<
      Record<string, { readonly IPAddress: string; readonly GlobalIPv6Address: string; readonly MacAddress: string }>
    >;
  };
}

/** Debian's podman with its CNI backend, all of its state in the node's directory. */
export class Podman {
  readonly #node: PrivateNode;
  readonly #command: readonly string[];

  private constructor(node: PrivateNode) {
    this.#node = node;
    const at = (name: string): string => join(node.directory, "podman", name);
    const places = ["--root", at("root"), "--runroot", at("runroot"), "--tmpdir", at("tmp")];
    this.#command = ["env", `CONTAINERS_CONF=${join(node.directory, "containers.conf")}`, "podman", ...places];
  }

  static async start(node: PrivateNode, places: PodmanPlaces, defaultNetwork: string): Promise<Podman> {
    writeFileSync(join(node.directory, "containers.conf"), configText(places, defaultNetwork));
    const podman = new Podman(node);
    const { busybox } = await makeImages(node.directory);
    await podman.run("load", "-i", busybox);
    return podman;
  }

  /** Runs a podman command; answers its output. @throws where it fails */
  run(...words: readonly string[]): Promise<string> {
    return this.#node.runWords([...this.#command, ...words]);
  }

  /** Starts a container that goes on in the background; answers its id. */
  start(name: string, options: readonly string[], script = "sleep 1000"): Promise<string> {
    return this.#runContainer(["-d", "--name", name, ...options], script);
  }

  /** Runs a container to its end and removes it; answers its output. */
  runOnce(script: string): Promise<string> {
    return this.#runContainer(["--rm"], script);
  }

  #runContainer(options: readonly string[], script: string): Promise<string> {
    const fixed = ["--cgroup-parent", this.#node.cgroup, "--entrypoint", '["/bin/sh"]', busyboxImage];
    return this.run("run", ...options, ...fixed, "-c", script);
  }

  async inspect(name: string): Promise<PodmanContainer & { readonly macs: readonly string[] }> {
    const [found]: Inspected[] = JSON.parse(await this.run("inspect", name));
    if (found === undefined) throw new Error(`podman knows no "${name}"`);
    const { Networks: networks, SandboxKey: netns } = found.NetworkSettings;
    const addresses = Object.entries(networks).map(([network, settings]) => {
      const both = [settings.IPAddress, settings.GlobalIPv6Address].filter((address) => address !== "");
      return [network, both] as const;
    });
    const macs = Object.values(networks).map(({ MacAddress: mac }) => mac);
    return { id: found.Id, netns, networks: new Map(addresses), macs };
  }

  /** Every container that runs. */
  async running(): Promise<readonly PodmanContainer[]> {
    const ids = (await this.run("ps", "-q", "--no-trunc")).split("\n").filter((id) => id !== "");
    return Promise.all(ids.map((id) => this.inspect(id)));
  }

  async removeAll(): Promise<void> {
    const ids = (await this.run("ps", "-a", "-q")).split("\n").filter((id) => id !== "");
    if (ids.length > 0) await this.run("rm", "-f", "-t", "0", ...ids);
  }
}

/** Without CAP_SYS_RESOURCE, as in many sandboxes, podman must not raise the limits that it starts with. */
function configText({ pluginDir, confDir }: PodmanPlaces, defaultNetwork: string): string {
  const bound = (name: string): number => {
    const line = readFileSync("/proc/self/limits", "utf8").match(
      new RegExp(`^Max ${name} +\\d+ +(\\d+|unlimited)`, "m"),
    );
    return Math.min(4096, Number(line?.[1]) || 4096);
  };
  return `[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile=${bound("open files")}:${bound("open files")}", "nproc=${bound("processes")}:${bound("processes")}"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_backend = "cni"
cni_plugin_dirs = ["${pluginDir}"]
network_config_dir = "${confDir}"
default_network = "${defaultNetwork}"
`;
}
