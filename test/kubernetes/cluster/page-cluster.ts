import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { busyboxImage } from "../../clients/images.ts";
import { kubernetesProgram } from "../assets.ts";
import { Cluster } from "./cluster.ts";
import { shellBlock } from "./documented.ts";
import type { KubeletNode, KubeletNodeSpec } from "./kubelet-node.ts";

export const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const programs = dirname(kubernetesProgram("kubectl"));
const path = "/usr/sbin:/usr/bin:/sbin:/bin";
/** What stands in for a registry that the nodes reach. */
const pagesImage = "docker.io/library/busybox:1.37";
/** `PIPETTE_SHOW=1`: for people who want to see it. */
export const isShown = process.env["PIPETTE_SHOW"] === "1";

/** The three machines of docs/kubernetes.md, and somebody at n1 who types what stands there. */
export class PageCluster implements AsyncDisposable {
  readonly cluster: Cluster;

  private constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  /** @param kinds of the machines */
  static async start(kinds: readonly Pick<KubeletNodeSpec, "containerd" | "managed">[]): Promise<PageCluster> {
    const cluster = await Cluster.start(kinds.length, () => []);
    const page = new PageCluster(cluster);
    try {
      for (const kind of kinds) await cluster.addNode({ ...kind, hasSwitch: false });
      await cluster.joined();
      for (const node of cluster.nodes)
        await page.onNode(node, `ctr -n k8s.io images tag ${busyboxImage} ${pagesImage}`);
      writeSsh(cluster);
      return page;
    } catch (caught) {
      await cluster[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** Runs the only block of a page of docs/ in which `words` stand, as `played` does. */
  play(page: string, words: string): Promise<string> {
    return this.played(shellBlock(page, words));
  }

  /** With `set -e`: every command has to succeed. @param cwd the clone, or what stands for it */
  async played(block: string, cwd = root): Promise<string> {
    const { plane, directory } = this.cluster;
    const env = {
      KUBECONFIG: plane.kubeconfig("admin"),
      PATH: [join(directory, "bin"), process.env["PATH"], programs].join(":"),
    };
    const from = performance.now();
    const { stdout } = await execa("sh", ["-ec", block], { cwd, env, timeout: 150_000 });
    if (isShown) console.log(`${block}--- ${((performance.now() - from) / 1000).toFixed(1)} s\n${stdout}\n`);
    return stdout;
  }

  /** As somebody on the node, with the containerd that it has. */
  async onNode(node: KubeletNode, block: string): Promise<string> {
    return await node.place.runWords(["env", ...environment(node), "sh", "-ec", block]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }
}

const environment = ({ containerd }: KubeletNode): readonly string[] => [
  `PATH=${containerd.programs}:${path}`,
  `CONTAINERD_ADDRESS=${containerd.socket}`,
];

/** The nodes have no ssh; they are namespaces of this machine. */
function writeSsh({ directory, nodes }: Cluster): void {
  const cases = nodes.map((node) => {
    const command = [...node.place.prefix, "env", ...environment(node), "sh", "-c"].join(" ");
    return `root@${node.name}) shift; exec ${command} "$*";;`;
  });
  mkdirSync(join(directory, "bin"));
  writeFileSync(join(directory, "bin", "ssh"), `#!/bin/sh\ncase $1 in\n${cases.join("\n")}\nesac\nexit 255\n`, {
    mode: 0o755,
  });
}
