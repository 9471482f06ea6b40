import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Containerd } from "../../clients/containerd.ts";
import { debianPlugins } from "../../conformance/plugin.ts";
import { type Link, nodeMac, nodeOn, routerOn } from "../../overlay/lab/addresses.ts";
import { type Underlay, withLength } from "../../overlay/lab/underlay.ts";
import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { expectAgreement, type RuntimePod } from "../../support/agreement.ts";
import { NetworkNamespace } from "../../support/network-namespace.ts";
import type { PrivateNode } from "../../support/private-node.ts";
import { type ContainerdVersion, containerdPrograms, kubernetesProgram } from "../assets.ts";
import { type ControlPlane, podCidrs } from "./control-plane.ts";
import { Daemon } from "./daemon.ts";
import { startNodePlace } from "./node-place.ts";
import { startNodeSwitch, switchLinks } from "./node-switch.ts";

const link: Link = "a";
const nic = "nic0";
/** The pods' network in agent.yaml. */
export const networkName = "pods";

export const nodeName = (number: number): string => `n${number}`;

export interface KubeletNodeSpec {
  readonly number: number;
  readonly plane: ControlPlane;
  readonly underlay: Underlay;
  /** Archives of images that every node has. */
  readonly images: readonly string[];
  readonly containerd: ContainerdVersion;
  /** Whether it has an Open vSwitch. */
  readonly hasSwitch: boolean;
  /** Whether the API server is reached by an interface of its own, which nothing on the node touches. */
  readonly managed?: boolean;
}

/** A machine with containerd, a kubelet and kube-proxy, which has no network for pods yet. It ends with this process. */
export class KubeletNode implements AsyncDisposable {
  readonly name: string;
  /** One per family. */
  readonly addresses: readonly [string, string];
  readonly place: PrivateNode;
  readonly namespace: NetworkNamespace;
  readonly containerd: Containerd;
  readonly kubelet: Daemon;
  /** Codes of what its doctor finds because a test wants it so. */
  readonly expected: string[] = [];
  /** Its Open vSwitch, if it has one. */
  readonly vswitch: OpenVswitch | undefined;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    spec: KubeletNodeSpec,
    place: PrivateNode,
    namespace: NetworkNamespace,
    containerd: Containerd,
    vswitch: OpenVswitch | undefined,
    stack: AsyncDisposableStack,
  ) {
    this.name = nodeName(spec.number);
    this.addresses = nodeOn(link, spec.number);
    this.place = place;
    this.namespace = namespace;
    this.containerd = containerd;
    this.vswitch = vswitch;
    this.#stack = stack;
    this.kubelet = stack.use(this.#daemon("kubelet", kubeletWords(this, spec.plane)));
    const proxy = stack.use(this.#daemon("kube-proxy", proxyWords(this, spec.plane)));
    this.kubelet.start();
    proxy.start();
  }

  static async start(spec: KubeletNodeSpec): Promise<KubeletNode> {
    await using stack = new AsyncDisposableStack();
    const { number, underlay, images } = spec;
    const place = stack.use(await startNodePlace());
    const namespace = stack.use(NetworkNamespace.at(`/proc/${place.firstPid}/ns/net`));
    namespace.sysctl({ "ipv6/conf/default/accept_dad": 0 });
    await underlay.connect(link, number, namespace, nic, nodeMac(number));
    await namespace.ip(
      `link set ${nic} up`,
      ...withLength(nodeOn(link, number)).map((address) => `addr add ${address} dev ${nic} nodad`),
      ...routerOn(link).map((router) => `route add default via ${router}`),
    );
    if (spec.managed === true) await manage(spec, namespace);
    const vswitch = spec.hasSwitch ? stack.use(await startNodeSwitch(place, namespace, number, nic)) : undefined;
    // Not links: the agent's container sees this directory alone.
    for (const name of ["loopback", "portmap", "bridge", "host-local"])
      await place.run(`cp ${debianPlugins}/${name} /opt/cni/bin/${name}`);
    const programs = containerdPrograms[spec.containerd];
    const places = { pluginDir: "/opt/cni/bin", confDir: "/etc/cni/net.d", programs };
    const containerd = stack.use(await Containerd.start(place, places));
    for (const path of images) await containerd.importImage(path);
    return new KubeletNode(spec, place, namespace, containerd, vswitch, stack.move());
  }

  /** The runtime's list of the pods that are alive and have a network of their own. */
  async sandboxes(): Promise<readonly RuntimePod[]> {
    const { cri } = this.containerd;
    const ready = [...(await cri.pods())].filter(([, state]) => state === "SANDBOX_READY");
    const all = ready.map(async ([containerId]) => {
      const { addresses, netns } = await cri.podStatus(containerId);
      return { network: networkName, containerId, ifname: "eth0", addresses, netns };
    });
    return (await Promise.all(all)).filter(({ netns }) => netns !== "");
  }

  /** The agent dies at once; the kubelet starts it again. */
  async killAgent(): Promise<void> {
    await this.place.run(`kill -KILL ${await this.place.run("pgrep -f ^/pipette.agent")}`);
  }

  /** Leases, interfaces, flows, port rules and containerd's pods: all say the same, at the latest after a moment. */
  async agrees(): Promise<void> {
    const options = {
      node: this.place,
      home: { directory: this.place.directory, configFile: "/etc/pipette/agent.yaml" },
      executables: "/opt/cni/bin",
      fixedLinks: ["lo", nic, ...(this.vswitch === undefined ? ["pipette0"] : switchLinks)],
      fixedNamespaces: [],
      expected: this.expected,
      env: { PIPETTE_NODE_NAME: this.name },
      withinMs: 40_000,
    };
    await expectAgreement(options, () => this.sandboxes());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #daemon(name: string, words: readonly string[]): Daemon {
    const log = join(this.place.directory, `${name}.log`);
    return new Daemon([kubernetesProgram(name), ...words], { log, prefix: this.place.prefix });
  }
}

/** By the other link, on which the router stands too. */
async function manage({ number, underlay }: KubeletNodeSpec, namespace: NetworkNamespace): Promise<void> {
  const name = "mgmt0";
  await underlay.connect("b", number + 100, namespace, name, nodeMac(number + 100));
  const server = routerOn(link).map((router, i) => `route add ${router} via ${routerOn("b")[i]} dev ${name}`);
  const own = withLength(nodeOn("b", number)).map((address) => `addr add ${address} dev ${name} nodad`);
  await namespace.ip(`link set ${name} up`, ...own, ...server);
}

/** On a machine that is not its own the kubelet may neither want sums of memory nor write to control groups of others. */
const kubeletConfig = (socket: string) => ({
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  containerRuntimeEndpoint: `unix://${socket}`,
  failCgroupV1: false,
  cgroupDriver: "cgroupfs",
  cgroupsPerQOS: false,
  enforceNodeAllocatable: [],
  failSwapOn: false,
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  evictionHard: { "nodefs.available": "0%", "imagefs.available": "0%", "memory.available": "1Mi" },
  imageGCHighThresholdPercent: 100,
  maxPods: 250,
  // There is no DNS, and an event for each pod that says so would hide others.
  clusterDNS: ["10.96.0.10"],
  kubeAPIQPS: 500,
  kubeAPIBurst: 1000,
});

function kubeletWords(node: KubeletNode, plane: ControlPlane): readonly string[] {
  const config = join(node.place.directory, "kubelet.yaml");
  writeFileSync(config, JSON.stringify(kubeletConfig(node.containerd.socket)));
  return [
    `--config=${config}`,
    `--kubeconfig=${plane.kubeconfig(`system:node:${node.name}`)}`,
    `--hostname-override=${node.name}`,
    `--node-ip=${node.addresses.join(",")}`,
    "--v=2",
  ];
}

const proxyWords = (node: KubeletNode, plane: ControlPlane): readonly string[] => [
  `--kubeconfig=${plane.kubeconfig("system:kube-proxy")}`,
  `--hostname-override=${node.name}`,
  `--cluster-cidr=${podCidrs.join(",")}`,
  "--proxy-mode=iptables",
  "--conntrack-max-per-core=0",
  "--conntrack-min=0",
];
