import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiObject } from "../../shared/kubernetes/mod.ts";
import { readPod } from "../../shared/policy/mod.ts";
import { ScriptedApiServer, type ScriptedObject } from "../fakes/kubernetes/scripted-api-server.ts";
import { type EndpointChoice, endpointObject } from "../fakes/service-objects.ts";
import { ServedPolicies } from "../policies/served-policies.ts";
import { eventually } from "../support/agent-process.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { external, nodeOn, routerOn } from "./lab/addresses.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { Relay } from "./lab/relay.ts";
import { NamedServer } from "./named-server.ts";

type Family = 4 | 6;

/** The number of the node that somebody belongs to, or comes by. */
type NodeNumber = 1 | 2;
const nodeNumbers = [1, 2] as const;
const linkOf = { 1: "a", 2: "b" } as const;

/** Who serves: a pod of each node, each node itself, and a host beyond them. */
export const servers = ["near", "far", "host1", "host2", "beyond"] as const;
export type Server = (typeof servers)[number];
const serverNode: Readonly<Record<Server, NodeNumber | undefined>> = {
  ...{ near: 1, far: 2, host1: 1, host2: 2, beyond: undefined },
};

/** Who asks: a pod of each node, each node itself, and a host beyond them, by either node. */
export const clients = ["pod1", "pod2", "node1", "node2", "outside1", "outside2"] as const;
export type Client = (typeof clients)[number];
export const nodeOf = (client: Client): NodeNumber => (client.endsWith("1") ? 1 : 2);
export const isOutside = (client: Client): boolean => client.startsWith("outside");

/** At which of a service's addresses. External and ingress IPs lead the world to one node each. */
export const places = ["clusterIp", "external", "ingress", "nodePort"] as const;
export type PlaceName = (typeof places)[number];

export interface WorldService {
  readonly name: string;
  readonly spec?: ApiObject;
  readonly protocol?: "TCP" | "UDP";
  /** Absent: 80, and that of `serverPort`. */
  readonly port?: number;
  readonly endpoints: Readonly<Partial<Record<Server, NonNullable<EndpointChoice["state"]>>>>;
}

/** Where all servers listen. */
const serverPort = 8080;
const firstNodePort = 30_000;

/**
 * Two nodes with the agent as it is delivered, in tunnels, which follow an API server for services and a controller for
 * policies: both play in this process, and tell what a test says.
 */
export class ServiceWorld implements AsyncDisposable {
  readonly lab: Lab;
  readonly policies: ServedPolicies;
  readonly #stack: AsyncDisposableStack;
  readonly #api: ScriptedApiServer;
  readonly #pods = new Map<string, LabPod>();
  /** A number for each service that ever was, which its addresses and ports follow from. */
  readonly #numbers = new Map<string, number>();
  readonly #services = new Set<string>();

  private constructor(
    lab: Lab,
    { api, policies }: { readonly api: ScriptedApiServer; readonly policies: ServedPolicies },
    stack: AsyncDisposableStack,
  ) {
    this.lab = lab;
    this.policies = policies;
    this.#api = api;
    this.#stack = stack;
  }

  static async start(): Promise<ServiceWorld> {
    await using stack = new AsyncDisposableStack();
    const directory = stack.use(scratchDir()).path;
    const api = stack.use(await ScriptedApiServer.start());
    for (const plural of ["services", "endpointslices"]) api.objects.set(plural, []);
    for (const number of nodeNumbers) api.put(`n${number}`, [], nodeOn(linkOf[number], number)[0]);
    const policies = stack.use(await ServedPolicies.start());
    const lab = stack.use(await groundOf(directory, Number(new URL(api.url).port), policies));
    const { namespace } = lab.underlay;
    for (const port of [Number(new URL(api.url).port), policies.port])
      stack.use(new Relay(namespace, routerOn("a")[0], port));
    await namespace.ip(
      ...nodeNumbers.flatMap((number) => {
        const [via4, via6] = nodeOn(linkOf[number], number);
        return [
          `route add 203.0.${112 + number}.0/24 via ${via4}`,
          `route add 198.18.${number}.0/24 via ${via4}`,
          `route add fd00:11${2 + number}::/64 via ${via6}`,
          `route add fd00:18${number}::/64 via ${via6}`,
        ];
      }),
    );
    await lab.startRegistry();
    await Promise.all(lab.nodes.map((node) => node.startAgent()));
    await Promise.all(lab.nodes.map((node) => lab.hearsOthers(node)));
    const world = new ServiceWorld(lab, { api, policies }, stack.move());
    try {
      await world.#populate();
      return world;
    } catch (caught) {
      await world[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** Pods that serve and pods that ask. */
  async #populate(): Promise<void> {
    const names = { near: 1, pod1: 1, far: 2, pod2: 2 } as const;
    await Promise.all(
      Object.entries(names).map(async ([name, number]) => {
        const pod = this.lab.node(number).pod(name);
        this.#pods.set(name, pod);
        this.#tellPod(pod, number, []);
        await pod.add();
        this.#tellPod(pod, number, pod.addresses);
      }),
    );
    const places = [
      ["near", this.pod("near").namespace],
      ["far", this.pod("far").namespace],
      ["host1", this.lab.node(1).namespace],
      ["host2", this.lab.node(2).namespace],
      ["beyond", this.lab.underlay.namespace],
    ] as const;
    for (const [name, namespace] of places) this.#stack.use(await NamedServer.start(namespace, name, serverPort));
  }

  #tellPod({ name, containerId }: LabPod, node: number, ips: readonly string[]): void {
    const pod = readPod({
      metadata: { namespace: "default", name, uid: containerId.slice(0, 12), labels: { name } },
      spec: { nodeName: `n${node}` },
      status: { podIPs: ips.map((ip) => ({ ip })) },
    });
    if (pod !== undefined) this.policies.computation.putPod(pod);
    this.policies.changed();
  }

  pod(name: "near" | "far" | "pod1" | "pod2"): LabPod {
    const pod = this.#pods.get(name);
    if (pod === undefined) throw new Error(`There is no pod ${name}`);
    return pod;
  }

  namespaceOf(client: Client): NetworkNamespace {
    if (client === "pod1" || client === "pod2") return this.pod(client).namespace;
    return isOutside(client) ? this.lab.underlay.namespace : this.lab.node(nodeOf(client)).namespace;
  }

  serverAddress(server: Server, family: Family): string {
    const i = family === 4 ? 0 : 1;
    if (server === "near" || server === "far") return this.pod(server).address(family);
    const addresses = server === "beyond" ? external : this.lab.node(serverNode[server] ?? 1).addresses;
    return addresses[i];
  }

  /** As whom a pod that serves sees who asks, where nothing hides it: whoever asks itself, a node by its gateway. */
  ownAddress(client: Client, family: Family): string {
    const i = family === 4 ? 0 : 1;
    if (client === "pod1" || client === "pod2") return this.pod(client).address(family);
    return isOutside(client) ? routerOn(linkOf[nodeOf(client)])[i] : this.gateway(nodeOf(client), family);
  }

  gateway(node: NodeNumber, family: Family): string {
    return this.pod(node === 1 ? "near" : "far").gateways[family === 4 ? 0 : 1] ?? "";
  }

  /** Address and port at which this client asks for a service. */
  addressOf(service: WorldService, place: PlaceName, client: Client, family: Family): readonly [string, number] {
    const [number, node] = [this.#numberOf(service), nodeOf(client)];
    const i = family === 4 ? 0 : 1;
    if (place === "nodePort") return [this.lab.node(node).addresses[i], firstNodePort + number];
    const pairs = {
      clusterIp: clusterIpsOf(number),
      external: externalIpsOf(number)[node - 1],
      ingress: ingressIpsOf(number)[node - 1],
    };
    return [pairs[place]?.[i] ?? "", service.port ?? 80];
  }

  #numberOf({ name }: WorldService): number {
    const number = this.#numbers.get(name) ?? this.#numbers.size + 1;
    this.#numbers.set(name, number);
    return number;
  }

  /** Tells the agents of services, new or changed. */
  put(...services: readonly WorldService[]): void {
    for (const service of services) {
      this.#services.add(service.name);
      this.#api.putObject("services", serviceOf(service, this.#numberOf(service)));
      for (const slice of this.#slicesOf(service)) this.#api.putObject("endpointslices", slice);
    }
  }

  remove(service: WorldService): void {
    this.#services.delete(service.name);
    this.#api.deleteObject("services", serviceOf(service, this.#numberOf(service)));
    for (const slice of this.#slicesOf(service)) this.#api.deleteObject("endpointslices", slice);
  }

  /** Answers when both agents have in force what they have been told of so many services. */
  async inForce(): Promise<void> {
    const wanted = `services: ${this.#services.size * 2} ports in force;`;
    for (const node of this.lab.nodes)
      await eventually(
        async () => `${(await node.home.status()).services};`.startsWith(wanted),
        `${node.name} to have its services in force`,
        60_000,
      );
  }

  #slicesOf({ name, protocol = "TCP", port, endpoints }: WorldService): readonly ScriptedObject[] {
    return ([4, 6] as const).map((family) => ({
      metadata: { namespace: "default", name: `${name}-${family}`, labels: { "kubernetes.io/service-name": name } },
      addressType: `IPv${family}`,
      endpoints: servers.flatMap((server) => {
        const state = endpoints[server];
        if (state === undefined) return [];
        return [endpointObject(this.serverAddress(server, family), { on: `n${serverNode[server]}`, state })];
      }),
      ports: [{ port: port ?? serverPort, protocol }],
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

const clusterIpsOf = (number: number): readonly string[] => [`10.96.0.${number}`, `fd00:96::${number}`];
/** Those of each node. */
const externalIpsOf = (number: number) =>
  nodeNumbers.map((node) => [`203.0.${112 + node}.${number}`, `fd00:11${2 + node}::${number}`] as const);
const ingressIpsOf = (number: number) =>
  nodeNumbers.map((node) => [`198.18.${node}.${number}`, `fd00:18${node}::${number}`] as const);

function serviceOf({ name, spec, protocol = "TCP", port = 80 }: WorldService, number: number): ScriptedObject {
  return {
    metadata: { namespace: "default", name, uid: `uid-${name}` },
    spec: {
      type: "LoadBalancer",
      clusterIPs: clusterIpsOf(number),
      ports: [{ port, protocol, nodePort: firstNodePort + number }],
      externalIPs: externalIpsOf(number).flat(),
      ...spec,
    },
    status: { loadBalancer: { ingress: ingressIpsOf(number).flatMap((ips) => ips.map((ip) => ({ ip }))) } },
  };
}

/** The nodes with their switches; the agents do not run yet, and find both servers at the router. */
async function groundOf(directory: string, apiPort: number, policies: ServedPolicies): Promise<Lab> {
  const at = routerOn("a")[0];
  const tokenOf = (node: string): string => {
    const file = join(directory, `token-${node}`);
    writeFileSync(file, `node-${node}`, { mode: 0o600 });
    return file;
  };
  const cidrs = ["10.96.0.0/16", "fd00:96::/112"];
  return Lab.ground({
    nodes: nodeNumbers.map((number) => linkOf[number]),
    sections: (node) => ({
      services: { server: `http://${at}:${apiPort}`, token: tokenOf(node), ca: policies.caFile, cidrs },
      policies: {
        ...{ controller: `https://${at}:${policies.port}`, token: tokenOf(node), ca: policies.caFile },
        waitMs: 10_000,
      },
    }),
  });
}
