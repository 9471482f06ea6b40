import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { unansweredPings } from "../overlay/lab/reach.ts";
import { describeWith } from "../support/requires.ts";
import type { Cluster } from "./cluster/cluster.ts";
import { placeOf, podsOf } from "./cluster/cluster-pods.ts";
import { shellBlock } from "./cluster/documented.ts";
import { PageCluster } from "./cluster/page-cluster.ts";

const page = "kubernetes.md";

/** The commands of docs/kubernetes.md, as they stand there, one part after another: each test needs those before. */
describeWith(
  "a first cluster, as the page has it",
  ["root", "kubelet", "cgroup-v1", "containerd", "cni-plugins", "busybox", "etcd", "openssl", "nft", "gcc"],
  () => {
    let made: PageCluster | undefined;
    const machines = (): PageCluster => {
      if (made === undefined) throw new Error("The cluster has not come up");
      return made;
    };
    const cluster = (): Cluster => machines().cluster;

    beforeAll(async () => {
      made = await PageCluster.start([{ containerd: "1.6" }, { containerd: "2.2" }, { containerd: "1.7" }]);
    });
    afterAll(() => made?.[Symbol.asyncDispose]());

    test("containerd's own configuration has the places that Pipette takes, and only its control groups to be changed", async () => {
      const block = shellBlock(page, "containerd config default").replace(/^systemctl .*$/m, "");
      const file = join(cluster().directory, "config.toml");
      for (const node of cluster().nodes) {
        await machines().onNode(node, block.replace("/etc/containerd/config.toml", file));
        const told = (await execa("cat", [file])).stdout;
        expect(told).toMatch(/bin_dirs? = (\[')?["']?\/opt\/cni\/bin/);
        expect(told).toMatch(/conf_dir = ["']\/etc\/cni\/net\.d/);
        expect(told.match(/SystemdCgroup = \w+/g)).toEqual(["SystemdCgroup = true"]);
      }
    });

    test("Debian's plugins lie where they are looked for, and nobody's configuration", async () => {
      for (const node of cluster().nodes) {
        await machines().onNode(node, "rm /opt/cni/bin/*");
        expect(await machines().onNode(node, shellBlock(page, "cp /usr/lib/cni"))).toBe("");
        expect(await machines().onNode(node, "ls /opt/cni/bin")).toBe("bandwidth\nloopback\nportmap");
      }
    });

    test("the image that npm makes gets onto each node", async () => {
      await machines().play(page, "npm run image");
      for (const node of cluster().nodes)
        expect(await machines().onNode(node, "ctr -n k8s.io images ls -q")).toContain(
          "docker.io/library/pipette:0.1.0",
        );
    });

    test("with one file applied all nodes are ready, and no doctor finds anything", async () => {
      const told = await machines().play(page, "-f conf/kubernetes/pipette.yaml");
      for (const { name } of cluster().nodes) {
        expect(told).toContain(`node/${name} condition met`);
        expect(told).toMatch(new RegExp(`^${name} +\\[10\\.10\\.\\d\\.0/24[ ,]fd10:`, "m"));
      }
      const health = await machines().play(page, "pipette doctor");
      expect(health.match(/no problems/g)).toHaveLength(3);
      expect(health.match(/all agree/g)).toHaveLength(3);
    });

    test("a pod on each node reaches those of all nodes", async () => {
      const block = shellBlock(page, "kubectl run");
      const [before, removal] = splitAt(block, "kubectl delete");
      const told = await machines().played(before);
      expect(told.match(/ 0% packet loss/g)).toHaveLength(9);
      const pods = await podsOf(cluster(), "first");
      expect(pods.map(({ node }) => node).sort()).toEqual(["n1", "n2", "n3"]);
      // The page's cluster has one family, this one has both.
      const places = await Promise.all(pods.map((pod) => placeOf(cluster(), pod)));
      expect(places.map(({ addresses }) => addresses.length)).toEqual([2, 2, 2]);
      expect(await unansweredPings(places)).toEqual([]);
      await machines().played(removal);
      expect(await podsOf(cluster(), "first")).toEqual([]);
    });

    test("what is removed leaves every node as it was", async () => {
      const told = await machines().play("operations.md", "ds/pipette-uninstall");
      expect(told).toContain('daemonset.apps "pipette-uninstall" deleted');
      for (const node of cluster().nodes) {
        expect(await machines().onNode(node, "ls /opt/cni/bin /etc/cni/net.d")).toBe(
          "/etc/cni/net.d:\n\n/opt/cni/bin:\nbandwidth\nloopback\nportmap",
        );
        // Directories stay, since they were mounted.
        expect(
          await machines().onNode(node, "find /var/lib/pipette /var/run/pipette /usr/libexec/pipette ! -type d"),
        ).toBe("");
        expect(await machines().onNode(node, "ip -o link | grep -v -e ' lo:' -e ' nic0@' || true")).toBe("");
        expect(await machines().onNode(node, "ip route show proto 112; ip -6 route show proto 112")).toBe("");
        expect(await machines().onNode(node, "nft list tables | grep pipette || true")).toBe("");
      }
    });
  },
);

function splitAt(text: string, words: string): readonly [string, string] {
  const at = text.indexOf(words);
  if (at < 0) throw new Error(`"${words}" does not stand there`);
  return [text.slice(0, at), text.slice(at)];
}
