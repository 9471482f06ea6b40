import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { executables } from "../conformance/plugin.ts";
import { pathOf, plainObjects } from "../manifests/manifest.ts";
import { HoldingProxy } from "../registry/holding-proxy.ts";
import { AgentHome, bridgeName, eventually, networkName, resultOf } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import type { ApiServer } from "./api-server.ts";
import { agentToken } from "./service-account.ts";

/** What a test with such a node needs of the machine. */
export const registryNeeds = [
  "linux",
  "root",
  "nft",
  "etcd",
  "openssl",
  "kube-apiserver",
  "kube-controller-manager",
  "kubectl",
] as const;

/** Who the agents are, and what they may. */
const rights = new Set([
  "ServiceAccount",
  "ClusterRole",
  "ClusterRoleBinding",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
]);

/** What an administrator does before the first agent runs; counts once the server holds agents to it. */
export async function shipped(server: ApiServer): Promise<void> {
  await eventually(
    async () => (await server.ask("GET", "/api/v1/namespaces/kube-system")).status === 200,
    "kube-system",
  );
  for (const each of plainObjects().filter(({ kind }) => rights.has(kind))) await server.create(pathOf(each), each);
}

/** As the kubelet registers it. @param podCidr absent: the controller manager gives it some */
export async function addNode(server: ApiServer, name: string, address: string, podCidr?: string): Promise<void> {
  const spec = podCidr === undefined ? {} : { podCIDR: podCidr, podCIDRs: [podCidr] };
  const conditions = [{ type: "Ready", status: "True", reason: "KubeletReady" }];
  const status = { addresses: addressesOf(name, address), conditions };
  await server.create("/api/v1/nodes", { metadata: { name }, spec, status });
}

export async function setAddress(server: ApiServer, name: string, address: string): Promise<void> {
  const status = { addresses: addressesOf(name, address) };
  await server.ask("PATCH", `/api/v1/nodes/${name}/status`, { status });
}

const addressesOf = (name: string, address: string): object[] => [
  { type: "Hostname", address: name },
  { type: "InternalIP", address },
];

export const removeNode = (server: ApiServer, name: string) => server.ask("DELETE", `/api/v1/nodes/${name}`);

export const podCidrs = (server: ApiServer, name: string): Promise<readonly string[]> =>
  eventually(async () => {
    const { spec } = (await server.ask("GET", `/api/v1/nodes/${name}`)).body as { spec: { podCIDRs?: string[] } };
    return spec.podCIDRs;
  }, `the pod CIDRs of ${name}`);

/**
 * One node, a network namespace, with the compiled agent, which has its subnets from a real API server. That is at
 * 127.0.0.1 of the test's own network, and the way to it, `way`, can be slow, cut or closed.
 */
export class RegistryNode implements AsyncDisposable {
  readonly address = "192.0.2.1";
  readonly mac = "02:00:00:00:00:01";
  readonly home: AgentHome;
  readonly way: HoldingProxy;
  readonly namespace: NetworkNamespace;
  readonly #pods = new Map<string, NetworkNamespace>();
  readonly #stack = new AsyncDisposableStack();

  private constructor(server: ApiServer, name: string, namespace: NetworkNamespace, way: HoldingProxy) {
    this.namespace = namespace;
    this.way = way;
    this.#stack.use(namespace);
    this.#stack.use(way);
    const changes = { networks: [{ name: networkName, bridge: bridgeName, masquerade: false }] };
    const prefix = ["setpriv", "--pdeathsig", "KILL", "nsenter", `--net=${namespace.path}`];
    this.#stack.defer(() => this.#pods.forEach((pod) => void pod[Symbol.dispose]()));
    this.home = this.#stack.use(new AgentHome(changes, executables, prefix));
    writeFileSync(this.caFile, readFileSync(server.ca));
    const registry = { type: "kubernetes", server: server.url, ca: this.caFile, token: this.tokenFile };
    this.configure({ nodes: { name, addresses: [this.address], registry } });
  }

  /** Its agent does not run yet; its Node, if there is to be one, is the caller's. */
  static async create(server: ApiServer, name: string): Promise<RegistryNode> {
    const namespace = NetworkNamespace.create();
    await namespace.ip("link set lo up", "link add eth0 address 02:00:00:00:00:01 type veth peer name wire");
    await namespace.ip("link set wire up", "link set eth0 up", "addr add 192.0.2.1/24 dev eth0");
    const way = await HoldingProxy.into(namespace.within, server.url);
    const node = new RegistryNode(server, name, namespace, way);
    node.setToken(await agentToken(server, name));
    return node;
  }

  get tokenFile(): string {
    return join(this.home.directory, "token");
  }

  get caFile(): string {
    return join(this.home.directory, "ca.crt");
  }

  setToken(token: string): void {
    writeFileSync(this.tokenFile, token, { mode: 0o600 });
  }

  /** Keys of agent.yaml, for the next start. */
  configure(changes: object): void {
    const config = JSON.parse(readFileSync(this.home.configFile, "utf8"));
    writeFileSync(this.home.configFile, JSON.stringify({ ...config, ...changes }));
  }

  /** ADD of a pod, or of the same once more; answers its addresses. */
  async addPod(id: string): Promise<readonly string[]> {
    const namespace = this.#pods.get(id) ?? NetworkNamespace.create();
    this.#pods.set(id, namespace);
    const answer = await this.home.cmd("cmdAdd", id, { netns: namespace.path });
    return resultOf(answer).ips.map(({ address }) => address);
  }

  async removePod(id: string): Promise<void> {
    await this.home.cmd("cmdDel", id);
    this.#pods.get(id)?.[Symbol.dispose]();
    this.#pods.delete(id);
  }

  /** What it says of the cluster: `node here at 192.0.2.1 with 10.80.0.0/24, 1 others; …`. */
  async cluster(): Promise<string> {
    return (await this.home.status()).cluster;
  }

  /** Until it knows of so many others. */
  others(count: number): Promise<unknown> {
    return eventually(async () => (await this.cluster()).includes(` ${count} others`), `${count} other nodes`);
  }

  /** What `pipette nodes list` prints. */
  nodesList(): Promise<string> {
    return this.namespace.run(`${executables}/pipette nodes list --config ${this.home.configFile}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}
