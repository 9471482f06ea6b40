import { expect, test } from "vitest";
import { eventually } from "../../support/agent-process.ts";
import { containerdPrograms } from "../assets.ts";
import type { Cluster } from "./cluster.ts";
import { failedSandboxes, podsOf } from "./cluster-pods.ts";
import { patienceSeconds } from "./control-plane.ts";
import { type KubeletNode, networkName } from "./kubelet-node.ts";
import { replaceAgent, verbsServed } from "./pipette.ts";
import { deployment } from "./workload.ts";

/** Of a /27. */
const poolSize = 29;
const tooMany = poolSize + 3;
/** How often a kubelet asks its runtime whether the network is ready. */
const kubeletAsksSeconds = 5;

interface Conditions {
  readonly items: readonly {
    readonly status: { readonly conditions: readonly { type: string; status: string; lastTransitionTime: string }[] };
  }[];
}

/** More pods than addresses. */
export function crowdedPool(cluster: () => Cluster): void {
  /** When each node has become ready: it shows that none was anything else since. */
  async function readySince(): Promise<readonly string[]> {
    const { items } = await cluster().plane.get<Conditions>("nodes");
    return items
      .flatMap(({ status }) => status.conditions)
      .filter(({ type }) => type === "Ready")
      .map(({ status, lastTransitionTime }) => `${status} since ${lastTransitionTime}`);
  }

  /** The nodes with such a pool. */
  const small = () => cluster().nodes.slice(1);
  const ready = async (app: string) => (await podsOf(cluster(), app)).filter(({ isReady }) => isReady);
  const allReady = async (apps: readonly string[]) =>
    new Set((await Promise.all(apps.map(ready))).flat().map(({ uid }) => uid));

  test("pods that get no address wait, no node turns unready for it, and no pod is evicted", async () => {
    const { plane, nodes } = cluster();
    await cluster().clear();
    for (const node of nodes) await withAllVersions(cluster(), node);
    await plane.apply(deployment("beside", { replicas: 2, node: "n1" }));
    await cluster().rolledOut("beside");
    const before = await readySince();
    for (const { name } of small()) await plane.apply(deployment(crowdOn(name), { replicas: tooMany, node: name }));
    for (const { name } of small()) {
      const app = crowdOn(name);
      await cluster().haveReady(app, poolSize);
      await eventually(async () => (await failedSandboxes(plane, app)).length > 0, "an event that says why");
    }
    const apps = ["beside", ...small().map(({ name }) => crowdOn(name))];
    const standing = await allReady(apps);
    // So long that each kubelet has asked twice, and the first pod would have to go.
    await Bun.sleep((2 * kubeletAsksSeconds + patienceSeconds + 1) * 1000);
    expect(await readySince()).toEqual(before);
    expect(before).toHaveLength(nodes.length);
    expect(await allReady(apps)).toEqual(standing);
    expect(await plane.kubectl("get events -A --field-selector reason=TaintManagerEviction -o name")).toBe("");
  });

  test("containerd 2 asks by version 1.1.0, STATUS too, the earlier ones by 1.0.0; none ever sends CHECK or GC", async () => {
    for (const node of cluster().nodes) {
      const isNew = node.containerd.programs === containerdPrograms["2.2"];
      expect(await verbsServed(cluster(), node)).toContain("ADD");
      expect(await furtherVerbs(cluster(), node)).toEqual(isNew ? ["STATUS"] : []);
      const asked = `grep -ho '"cniVersion":"[^"]*"' /var/lib/cni/results/${networkName}-*`;
      const versions = new Set((await node.place.runWords(["sh", "-c", asked])).split("\n"));
      expect(versions).toEqual(new Set([`"cniVersion":"${isNew ? "1.1.0" : "1.0.0"}"`]));
    }
  });

  test("as soon as there are addresses again the others come, and everything agrees", async () => {
    const { plane } = cluster();
    for (const { name } of small()) {
      const app = crowdOn(name);
      const waiting = (await podsOf(cluster(), app)).filter(({ isReady }) => !isReady).map((pod) => pod.name);
      expect(waiting).toHaveLength(tooMany - poolSize);
      // Of those that have one, and nobody makes others in their place, which might come before the waiting ones.
      const going = (await ready(app)).slice(0, tooMany - poolSize).map((pod) => pod.name);
      for (const owner of [`deployment ${app}`, `replicasets -l app=${app}`])
        await plane.kubectl(`delete ${owner} --cascade=orphan`);
      await plane.kubectl(`delete pods ${going.join(" ")} --wait=false`);
      await plane.kubectl(`wait pods ${waiting.join(" ")} --for=condition=Ready --timeout=60s`);
      await plane.kubectl(`delete pods -l app=${app} --wait=false`);
    }
    await plane.kubectl("delete deployment beside --wait=false");
    await plane.kubectl("wait pods --all --for=delete --timeout=60s");
    await Promise.all(cluster().nodes.map((node) => node.agrees()));
  });
}

const crowdOn = (node: string): string => `crowd-on-${node}`;

/** Beside those that every pod needs. */
const furtherVerbs = async (cluster: Cluster, node: KubeletNode): Promise<readonly string[]> =>
  (await verbsServed(cluster, node)).filter((verb) => verb !== "ADD" && verb !== "DEL");

/**
 * containerd 2 asks plugins for STATUS only by version 1.1.0, which is offered to it where no other plugin is in the list:
 * the portmap of Debian does not know it.
 */
async function withAllVersions(cluster: Cluster, node: KubeletNode): Promise<void> {
  const versions = async (): Promise<string> =>
    JSON.stringify(JSON.parse(await node.place.run("cat /etc/cni/net.d/10-pipette.conflist")).cniVersions);
  expect(await versions()).toBe('["1.0.0"]');
  expect(await furtherVerbs(cluster, node)).toEqual([]);
  await node.place.run("rm /opt/cni/bin/portmap");
  node.expected.push("no-host-ports");
  await replaceAgent(cluster, node);
  await eventually(async () => (await versions()) === '["1.0.0","1.1.0"]', "a configuration with STATUS");
}
