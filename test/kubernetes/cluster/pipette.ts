import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument, stringify } from "yaml";
import type { Cluster } from "./cluster.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { KubeletNode } from "./kubelet-node.ts";
import { type Manifest, manifests } from "./manifests.ts";

export type DataPath = "bridge" | "ovs";

const files = { bridge: "pipette.yaml", ovs: "pipette-openvswitch.yaml" } as const;

/** What a test has otherwise than the file: a switch in user space, which the node has itself. */
const changes = { bridge: {}, ovs: { ovs: { datapath: "netdev" } } } as const;
/** Less to wait for, and a log that has every call. */
export const forTests = { janitorIntervalMs: 500, logLevel: "debug" } as const;

interface Installation {
  readonly dataPath: DataPath;
  /** Keys of agent.yaml that are otherwise than in the file. */
  readonly config?: object;
  /** The node that gets an agent; absent: all. */
  readonly only?: string;
}

/** `kubectl apply -f` of the file that is shipped. */
export async function installPipette(cluster: Cluster, installation: Installation): Promise<void> {
  const { dataPath, config: more = {}, only } = installation;
  const objects = manifests(files[dataPath]).filter(({ metadata }) => metadata.name !== "pipette-openvswitch");
  const config = objects.find(isConfig)?.data;
  if (config === undefined) throw new Error(`There is no agent.yaml in "${files[dataPath]}"`);
  config["agent.yaml"] = stringify({
    ...parseDocument(config["agent.yaml"] ?? "").toJS(),
    ...changes[dataPath],
    ...more,
  });
  // For commands on the node, which the file of the pod is not for.
  for (const { place } of cluster.nodes) {
    const copy = join(place.directory, "agent.yaml");
    writeFileSync(copy, config["agent.yaml"]);
    await place.run(`cp ${copy} /etc/pipette/agent.yaml`);
  }
  if (only !== undefined)
    for (const { spec } of objects)
      if (spec?.template !== undefined) spec.template.spec.nodeSelector["kubernetes.io/hostname"] = only;
  await cluster.plane.apply(...objects);
}

/** What the runtime of this node has asked its agent for since that was started, each verb once. */
export async function verbsServed({ plane }: Cluster, { name }: KubeletNode): Promise<readonly string[]> {
  const log = await plane.kubectl(`-n kube-system logs ${await agentOf(plane, name)}`);
  const lines = log.split("\n").filter((line) => line.startsWith("{"));
  const calls: { verb?: string; network?: string }[] = lines.map((line) => JSON.parse(line));
  // People, and the doctor, ask for the STATUS of no network but of all.
  return [...new Set(calls.flatMap(({ verb = "", network = "" }) => (network === "" ? [] : [verb])))]
    .filter(Boolean)
    .sort();
}

/** Has another agent come in place of that of this node. */
export async function replaceAgent({ plane }: Cluster, { name }: KubeletNode): Promise<void> {
  await plane.kubectl(`-n kube-system delete ${await agentOf(plane, name)}`);
}

const agentOf = (plane: ControlPlane, node: string): Promise<string> =>
  plane.kubectl(
    `-n kube-system get pods -l app.kubernetes.io/component=agent --field-selector spec.nodeName=${node} -o name`,
  );

const isConfig = ({ kind, metadata }: Manifest): boolean => kind === "ConfigMap" && metadata.name === "pipette-agent";
