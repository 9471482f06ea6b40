import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { busyboxImage } from "../clients/images.ts";
import { unansweredPings } from "../overlay/lab/reach.ts";
import { describeWith } from "../support/requires.ts";
import { kubernetesProgram } from "./assets.ts";
import { Cluster } from "./cluster/cluster.ts";
import { placeOf, podsOf } from "./cluster/cluster-pods.ts";
import { shellBlock } from "./cluster/documented.ts";
import type { KubeletNode } from "./cluster/kubelet-node.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const programs = dirname(kubernetesProgram("kubectl"));
const path = "/usr/sbin:/usr/bin:/sbin:/bin";
const page = "kubernetes.md";
/** What stands in for a registry that the nodes reach. */
const pagesImage = "docker.io/library/busybox:1.37";
/** `PIPETTE_SHOW=1`: for people who want to see it. */
const isShown = process.env["PIPETTE_SHOW"] === "1";

/** The commands of docs/kubernetes.md, as they stand there, one part after another: each test needs those before. */
describeWith(
  "a first cluster, as the page has it",
  ["root", "kubelet", "cgroup-v1", "containerd", "cni-plugins", "busybox", "etcd", "openssl", "nft", "gcc"],
  () => {
    let made: Cluster | undefined;
    const cluster = (): Cluster => {
      if (made === undefined) throw new Error("The cluster has not come up");
      return made;
    };

    beforeAll(async () => {
      made = await Cluster.start(3, () => []);
      for (const containerd of ["1.6", "2.2", "1.7"] as const) await made.addNode({ containerd, hasSwitch: false });
      await made.joined();
      for (const node of made.nodes) await onNode(node, `ctr -n k8s.io images tag ${busyboxImage} ${pagesImage}`);
      writeSsh(made);
    });
    afterAll(() => made?.[Symbol.asyncDispose]());

    /** With `set -e`: every command has to succeed. */
    async function played(block: string): Promise<string> {
      const { plane, directory } = cluster();
      const env = {
        KUBECONFIG: plane.kubeconfig("admin"),
        PATH: [join(directory, "bin"), process.env["PATH"], programs].join(":"),
      };
      const from = performance.now();
      const { stdout } = await execa("sh", ["-ec", block], { cwd: root, env, timeout: 150_000 });
      if (isShown) console.log(`${block}--- ${((performance.now() - from) / 1000).toFixed(1)} s\n${stdout}\n`);
      return stdout;
    }

    test("containerd's own configuration has the places that Pipette takes, and only its control groups to be changed", async () => {
      const block = shellBlock(page, "containerd config default").replace(/^systemctl .*$/m, "");
      const file = join(cluster().directory, "config.toml");
      for (const node of cluster().nodes) {
        await onNode(node, block.replace("/etc/containerd/config.toml", file));
        const told = (await execa("cat", [file])).stdout;
        expect(told).toMatch(/bin_dirs? = (\[')?["']?\/opt\/cni\/bin/);
        expect(told).toMatch(/conf_dir = ["']\/etc\/cni\/net\.d/);
        expect(told.match(/SystemdCgroup = \w+/g)).toEqual(["SystemdCgroup = true"]);
      }
    });

    test("Debian's plugins lie where they are looked for, and nobody's configuration", async () => {
      for (const node of cluster().nodes) {
        await onNode(node, "rm /opt/cni/bin/*");
        expect(await onNode(node, shellBlock(page, "cp /usr/lib/cni"))).toBe("");
        expect(await onNode(node, "ls /opt/cni/bin")).toBe("bandwidth\nloopback\nportmap");
      }
    });

    test("the image that npm makes gets onto each node", async () => {
      await played(shellBlock(page, "npm run image"));
      for (const node of cluster().nodes)
        expect(await onNode(node, "ctr -n k8s.io images ls -q")).toContain("docker.io/library/pipette:0.1.0");
    });

    test("with one file applied all nodes are ready, and no doctor finds anything", async () => {
      const told = await played(shellBlock(page, "kubectl apply"));
      for (const { name } of cluster().nodes) {
        expect(told).toContain(`node/${name} condition met`);
        expect(told).toMatch(new RegExp(`^${name} +\\[10\\.10\\.\\d\\.0/24[ ,]fd10:`, "m"));
      }
      const health = await played(shellBlock(page, "pipette doctor"));
      expect(health.match(/no problems/g)).toHaveLength(3);
      expect(health.match(/all agree/g)).toHaveLength(3);
    });

    test("a pod on each node reaches those of all nodes", async () => {
      const block = shellBlock(page, "kubectl run");
      const [before, removal] = splitAt(block, "kubectl delete");
      const told = await played(before);
      expect(told.match(/ 0% packet loss/g)).toHaveLength(9);
      const pods = await podsOf(cluster(), "first");
      expect(pods.map(({ node }) => node).sort()).toEqual(["n1", "n2", "n3"]);
      // The page's cluster has one family, this one has both.
      const places = await Promise.all(pods.map((pod) => placeOf(cluster(), pod)));
      expect(places.map(({ addresses }) => addresses.length)).toEqual([2, 2, 2]);
      expect(await unansweredPings(places)).toEqual([]);
      await played(removal);
      expect(await podsOf(cluster(), "first")).toEqual([]);
    });

    test("what is removed leaves every node as it was", async () => {
      const told = await played(shellBlock("operations.md", "ds/pipette-uninstall"));
      expect(told).toContain('daemonset.apps "pipette-uninstall" deleted');
      for (const node of cluster().nodes) {
        expect(await onNode(node, "ls /opt/cni/bin /etc/cni/net.d")).toBe(
          "/etc/cni/net.d:\n\n/opt/cni/bin:\nbandwidth\nloopback\nportmap",
        );
        // Directories stay, since they were mounted.
        expect(await onNode(node, "find /var/lib/pipette /var/run/pipette ! -type d")).toBe("");
        expect(await onNode(node, "ip -o link | grep -v -e ' lo:' -e ' nic0@' || true")).toBe("");
        expect(await onNode(node, "ip route show proto 112; ip -6 route show proto 112")).toBe("");
        expect(await onNode(node, "nft list tables | grep pipette || true")).toBe("");
      }
    });
  },
);

/** As somebody on the node, with the containerd that it has. */
async function onNode(node: KubeletNode, block: string): Promise<string> {
  return await node.place.runWords(["env", ...environment(node), "sh", "-ec", block]);
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

function splitAt(text: string, words: string): readonly [string, string] {
  const at = text.indexOf(words);
  if (at < 0) throw new Error(`"${words}" does not stand there`);
  return [text.slice(0, at), text.slice(at)];
}
