import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "./cluster.ts";
import { networkName } from "./kubelet-node.ts";
import { switchDirectory } from "./node-switch.ts";
import { manifests } from "./manifests.ts";

interface PodTemplate {
  serviceAccountName?: string;
  automountServiceAccountToken?: boolean;
  readonly containers: { readonly volumeMounts: object[] }[];
  readonly volumes: object[];
}

export type DataPath = "bridge" | "ovs";

/** Installs the agent on all nodes, as a user does it: configuration, rights, DaemonSet. */
export async function installPipette(cluster: Cluster, dataPath: DataPath): Promise<void> {
  for (const node of cluster.nodes) {
    const config = {
      dataPath,
      networks: [{ name: networkName, bridge: dataPath === "ovs" ? "br-int" : "pipette0", hairpin: true }],
      nodes: { name: node.name, registry: { type: "kubernetes" } },
      cni: { plugins: [{ type: "portmap", capabilities: { portMappings: true }, snat: true }] },
      janitorIntervalMs: 500,
      ...(dataPath === "ovs" ? { ovs: { datapath: "netdev" } } : {}),
    };
    const made = join(node.place.directory, "agent.yaml");
    writeFileSync(made, JSON.stringify(config));
    await node.place.run(`cp ${made} /etc/pipette/agent.yaml`);
  }
  const [daemonSet] = manifests("linux-daemonset.yaml") as { spec: { template: { spec: PodTemplate } } }[];
  if (daemonSet === undefined) throw new Error("There is no DaemonSet in the file");
  const pod = daemonSet.spec.template.spec;
  pod.serviceAccountName = "pipette-agent";
  pod.automountServiceAccountToken = true;
  if (dataPath === "ovs") {
    pod.containers[0]?.volumeMounts.push({ name: "ovs", mountPath: switchDirectory });
    pod.volumes.push({ name: "ovs", hostPath: { path: switchDirectory, type: "Directory" } });
  }
  await cluster.plane.apply(...manifests("registry-rbac.yaml"), daemonSet);
}
