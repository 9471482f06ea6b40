import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument, stringify } from "yaml";
import type { Cluster } from "./cluster.ts";
import { type Manifest, manifests } from "./manifests.ts";

export type DataPath = "bridge" | "ovs";

const files = { bridge: "pipette.yaml", ovs: "pipette-openvswitch.yaml" } as const;

/** What a test has otherwise than the file: less to wait for, and a switch in user space, which the node has itself. */
const changes = {
  bridge: { janitorIntervalMs: 500 },
  ovs: { janitorIntervalMs: 500, ovs: { datapath: "netdev" } },
} as const;

/**
 * `kubectl apply -f` of the file that is shipped.
 * @param only the node that gets an agent; absent: all
 */
export async function installPipette(cluster: Cluster, dataPath: DataPath, only?: string): Promise<void> {
  const objects = manifests(files[dataPath]).filter(({ metadata }) => metadata.name !== "pipette-openvswitch");
  const config = objects.find(isConfig)?.data;
  if (config === undefined) throw new Error(`There is no agent.yaml in "${files[dataPath]}"`);
  config["agent.yaml"] = stringify({ ...parseDocument(config["agent.yaml"] ?? "").toJS(), ...changes[dataPath] });
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

const isConfig = ({ kind, metadata }: Manifest): boolean => kind === "ConfigMap" && metadata.name === "pipette-agent";
