import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findHelm } from "./helm.ts";

/** `npm run manifests`: writes the plain files of conf/kubernetes, which are the chart's with few other values. */

const root = fileURLToPath(new URL("..", import.meta.url));
export const chart = join(root, "conf/chart/pipette");
const plain = join(root, "conf/kubernetes");

/**
 * The newest version whose schemas the tests have; given explicitly because a Helm that is built from its module
 * assumes another one.
 */
export const kubeVersion = "1.37.0";

export interface PlainFile {
  readonly path: string;
  /** Of the chart. */
  readonly values: readonly string[];
  /** Only these templates; absent: all. */
  readonly only?: readonly string[];
  readonly about: string;
}

export const plainFiles: readonly PlainFile[] = [
  {
    path: join(plain, "pipette.yaml"),
    values: [],
    about: `Pipette with a kernel bridge on each node: "kubectl apply -f pipette.yaml". For nodes on one link.`,
  },
  {
    path: join(plain, "pipette-uninstall.yaml"),
    // With the way to Open vSwitch's database, where a node has one: one file for both.
    values: ["uninstall=true", "dataPath=ovs"],
    only: ["uninstall.yaml"],
    about: `Takes Pipette off every node, once no agent runs any more (docs/operations.md, "Remove").`,
  },
  {
    path: join(plain, "pipette-openvswitch.yaml"),
    values: ["dataPath=ovs"],
    about: `Pipette with Open vSwitch, whose daemons it brings along, and a tunnel between nodes:
"kubectl apply -f pipette-openvswitch.yaml".`,
  },
  {
    path: join(plain, "pipette-controller.yaml"),
    values: ["controller.enabled=true"],
    only: ["controller.yaml"],
    about: `The controller of network policies, beside either (docs/policies.md).`,
  },
  {
    path: join(plain, "pipette-cluster-state.yaml"),
    values: ["clusterState.enabled=true"],
    only: ["cluster-state.yaml"],
    about: `How each node is, as "kubectl get pipettenodes" shows it, beside either: agents that have "clusterState: {}" in their
agent.yaml tell it, and a controller with --watch-nodes watches over it (docs/operations.md).`,
  },
  {
    path: join(plain, "pipette-ipsec-certificates.yaml"),
    values: ["ipsecCertificates.enabled=true"],
    only: ["ipsec-certificates.yaml"],
    about: `Certificates by which nodes know each other in IPsec, beside pipette-openvswitch.yaml: agents that have
"ovs.ipsec.certificates" in their agent.yaml ask for them, and a controller with --sign-ipsec signs them (docs/encryption.md).`,
  },
];

/** What `kubectl apply` takes. @throws {Error} with what helm says */
export async function render({ values, only = [], about }: PlainFile, helm: string): Promise<string> {
  const objects = await template(helm, [
    ...values.flatMap((value) => ["--set", value]),
    ...only.flatMap((name) => ["--show-only", `templates/${name}`]),
  ]);
  const comments = `${about}
Kubernetes 1.30 or later. The images have to be on the nodes, or in a registry whose name stands before theirs
(docs/operations.md). Made of conf/chart/pipette by "npm run manifests", which has more to choose from.`;
  return `${comments.replaceAll(/^/gm, "# ")}\n${objects}`;
}

/** The chart's objects. @throws {Error} with what helm says */
export async function template(helm: string, args: readonly string[]): Promise<string> {
  const words = ["template", "pipette", chart, "--namespace", "kube-system", "--kube-version", kubeVersion, ...args];
  const child = Bun.spawn([helm, ...words], { stdout: "pipe", stderr: "pipe", env: {} });
  const [text, said, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (status !== 0) throw new Error(said);
  return text.replaceAll(/^# Source: .*\n/gm, "");
}

if (import.meta.main) {
  const helm = findHelm();
  if (helm === undefined) {
    console.error('Cannot render the chart: there is no helm, wanted it on the PATH or named by the variable "HELM"');
    process.exit(1);
  }
  for (const file of plainFiles) await Bun.write(file.path, await render(file, helm));
}
