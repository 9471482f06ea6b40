import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findHelm } from "../../build/helm.ts";
import { template } from "../../build/manifests.ts";
import { Conversation } from "../overlay/lab/conversation.ts";
import { unansweredPings } from "../overlay/lab/reach.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { beforeSwitchImage, earlierExecutables, whyNoEarlierRelease } from "../upgrade/earlier-release.ts";
import type { Cluster } from "./cluster/cluster.ts";
import { placeOf, podsOf } from "./cluster/cluster-pods.ts";
import { shellBlock } from "./cluster/documented.ts";
import { imageOfPipette } from "./cluster/images.ts";
import { isShown, PageCluster, root } from "./cluster/page-cluster.ts";

const page = "kubernetes.md";
/** This kernel has no module of Open vSwitch: its data path is in user space, and so has to have the node's card. */
const inUserSpace = ["--set", "dataPath=ovs,linux.config.ovs.datapath=netdev,linux.config.ovs.uplink=nic0"];

/** The commands of docs/kubernetes.md about Open vSwitch, with the images that npm makes. Each test needs those before. */
describeWith(
  "Open vSwitch in pods of a cluster, as the page has it",
  [
    "root",
    "kubelet",
    "cgroup-v1",
    "containerd",
    "cni-plugins",
    "busybox",
    "etcd",
    "openssl",
    "nft",
    "gcc",
    "helm",
    "openvswitch",
  ],
  () => {
    let made: PageCluster | undefined;
    const machines = (): PageCluster => {
      if (made === undefined) throw new Error("The cluster has not come up");
      return made;
    };
    const cluster = (): Cluster => machines().cluster;
    /** What stands for the clone: with the file as it has to be where the switch is in user space. */
    const clone = () => join(cluster().directory, "clone");

    beforeAll(async () => {
      // With a kernel's module the node's own packets do not go through the switch. Here they do, but for the API's.
      const managed = true;
      made = await PageCluster.start((["1.6", "2.2", "1.7"] as const).map((containerd) => ({ containerd, managed })));
      mkdirSync(join(clone(), "conf/kubernetes"), { recursive: true });
      symlinkSync(join(root, "dist"), join(clone(), "dist"));
      for (const name of ["pipette.yaml", "pipette-uninstall.yaml"])
        symlinkSync(join(root, "conf/kubernetes", name), join(clone(), "conf/kubernetes", name));
      const objects = await template(findHelm() ?? "", inUserSpace);
      writeFileSync(join(clone(), "conf/kubernetes/pipette-openvswitch.yaml"), objects);
    });
    afterAll(() => made?.[Symbol.asyncDispose]());

    test("with two images and one file all nodes are ready, and no doctor finds anything", async () => {
      await machines().play(page, "npm run image");
      const told = await machines().played(shellBlock(page, "pipette-openvswitch-0.1.0"), clone());
      for (const { name } of cluster().nodes) expect(told).toContain(`node/${name} condition met`);
      expect(told).toContain("Port pipette-tun0\n            Interface pipette-tun0\n                type: geneve");
      const health = await machines().play(page, "pipette doctor");
      expect(health.match(/no problems/g)).toHaveLength(3);
      expect(health.match(/all agree/g)).toHaveLength(3);
    });

    test("a pod on each node reaches those of all nodes", async () => {
      const [before] = shellBlock(page, "kubectl run").split("kubectl delete");
      const told = await machines().played(before ?? "");
      expect(told.match(/ 0% packet loss/g)).toHaveLength(9);
      const places = await Promise.all((await podsOf(cluster(), "first")).map((pod) => placeOf(cluster(), pod)));
      expect(places.map(({ addresses }) => addresses.length)).toEqual([2, 2, 2]);
      expect(await unansweredPings(places)).toEqual([]);
    });

    /** At the latest after a moment: a switch in user space that starts anew drops the first packet to each other node. */
    const allReached = async (): Promise<void> => {
      const places = await Promise.all((await podsOf(cluster(), "first")).map((pod) => placeOf(cluster(), pod)));
      await eventually(async () => (await unansweredPings(places)).length === 0, "all pods to be reached");
      expect((await machines().play(page, "pipette doctor")).match(/all agree/g)).toHaveLength(3);
    };

    test("the daemons' pods are replaced, node by node: connections go on", async () => {
      const pods = await podsOf(cluster(), "first");
      const [one, two, three] = await Promise.all(pods.map((pod) => placeOf(cluster(), pod)));
      if (one === undefined || two === undefined || three === undefined) throw new Error("There are too few pods");
      using first = await Conversation.start(one.namespace, two.namespace, two.addresses[0] ?? "");
      using second = await Conversation.start(three.namespace, one.namespace, one.addresses[1] ?? "");
      const before = await daemonPods();
      await machines().play(page, "rollout restart ds/pipette-openvswitch");
      expect((await daemonPods()).filter((name) => before.includes(name))).toEqual([]);
      await first.goesOn();
      await second.goesOn();
      expect([first.ended, second.ended]).toEqual([undefined, undefined]);
      if (isShown) console.log(`Silences of ${[first, second].map((each) => Math.round(each.longestSilenceMs))} ms`);
      await allReached();
    });

    /** What each release's manifest has its installing container do. */
    const install = {
      earlier: ["/pipette", "install", "--executables-only", "--bin-dir", "/host/opt/cni/bin"],
      get "0.1.0"() {
        return [...this.earlier, "--libexec-dir", "/host/usr/libexec/pipette"];
      },
    };

    /** Rolls the agents, has them wire a pod more, and looks after all of them. */
    const rolled = async (tag: keyof typeof install): Promise<void> => {
      const [one, two] = await Promise.all((await podsOf(cluster(), "first")).map((pod) => placeOf(cluster(), pod)));
      if (one === undefined || two === undefined) throw new Error("There are too few pods");
      using talk = await Conversation.start(one.namespace, two.namespace, two.addresses[0] ?? "");
      const changed = (path: string, value: unknown) => ({ op: "replace", path: `/spec/template/spec/${path}`, value });
      const patch = JSON.stringify([
        changed("initContainers/0/image", `pipette:${tag}`),
        changed("initContainers/0/command", install[tag]),
        changed("containers/0/image", `pipette:${tag}`),
      ]);
      await machines().played(`kubectl -n kube-system patch ds/pipette-agent --type=json --patch='${patch}'
kubectl -n kube-system rollout status ds/pipette-agent --timeout=2m
kubectl run by-${tag.replaceAll(".", "-")} --image=busybox:1.37 --labels=app=first --command -- sleep 3600
kubectl wait pods -l app=first --for=condition=Ready --timeout=1m`);
      await talk.goesOn();
      await allReached();
      if (isShown) console.log(`Silence of ${Math.round(talk.longestSilenceMs)} ms`);
    };
    const missing = whyNoEarlierRelease(beforeSwitchImage);

    test("agents of the commit before take over from these: connections go on, and a pod more comes", async (context) => {
      if (missing !== undefined) return context.skip(missing);
      const archive = join(cluster().directory, "earlier.tar");
      const directory = await earlierExecutables("linux", beforeSwitchImage);
      writeFileSync(archive, imageOfPipette("docker.io/library/pipette:earlier", directory));
      for (const { containerd } of cluster().nodes) await containerd.importImage(archive);
      await rolled("earlier");
    });

    test("these take over from those: connections go on, and what the others have wired too", async (context) => {
      if (missing !== undefined) return context.skip(missing);
      await rolled("0.1.0");
      expect(await podsOf(cluster(), "first")).toHaveLength(5);
    });

    test("what is removed leaves every node as it was", async () => {
      const [, removal] = shellBlock(page, "kubectl run").split("kubectl delete");
      await machines().played(`kubectl delete${removal}`);
      const block = shellBlock("operations.md", "ds/pipette-uninstall");
      const told = await machines().played(block.replace("pipette.yaml", "pipette-openvswitch.yaml"), clone());
      expect(told.match(/of Open vSwitch undone/g)).toHaveLength(3);
      for (const { name } of cluster().nodes) expect(told).toContain(`of the Node "${name}"  kubectl annotate node`);
      expect(told).toContain('daemonset.apps "pipette-openvswitch" deleted');
      await machines().play(page, "rm -r /var/lib/pipette-openvswitch");
      for (const node of cluster().nodes) {
        const looked = (command: string) => machines().onNode(node, command);
        await eventually(async () => (await looked("ls /run/openvswitch")) === "", "the daemons' files to be gone");
        expect(await looked("ls -A /opt/cni/bin /etc/cni/net.d")).toBe(
          "/etc/cni/net.d:\n\n/opt/cni/bin:\nbridge\nhost-local\nloopback\nportmap",
        );
        // Directories stay, since they were mounted.
        expect(await looked("find /var/lib/pipette* /var/run/pipette ! -type d")).toBe("");
        expect(await looked("ip -o link | cut -d' ' -f2 | cut -d@ -f1")).toBe("lo:\nnic0\nmgmt0");
        for (const address of node.addresses)
          expect(await looked("ip -o addr show dev nic0")).toContain(` ${address}/`);
        expect(await looked("ip route show default; ip -6 route show default")).toMatch(
          /^default .* nic0.*\ndefault .* nic0/,
        );
        expect(await looked("ip route show proto 112; ip -6 route show proto 112")).toBe("");
        expect(await looked("nft list tables | grep pipette || true")).toBe("");
      }
    });

    const daemonPods = async (): Promise<readonly string[]> => {
      const label = "app.kubernetes.io/component=openvswitch";
      return (await cluster().plane.kubectl(`-n kube-system get pods -l ${label} -o name`)).split("\n");
    };
  },
);
