import type { TrafficMode } from "../../../agent/config/ovs-config.ts";
import { executables } from "../../conformance/plugin.ts";
import { EtcdCluster, type MemberPlace } from "../../registry/etcd-cluster.ts";
import { eventually } from "../../support/agent-process.ts";
import { clusterNetworks, etcdMembers, type Link, routerOn } from "./addresses.ts";
import type { LabEsp } from "./ipsec-daemons.ts";
import { type LabDataPath, LabNode, type NicShape } from "./lab-node.ts";
import { scratchUntilEnd } from "./scratch-until-end.ts";
import { routesOf } from "./traces.ts";
import { Underlay } from "./underlay.ts";

export interface LabOptions {
  /** The link that each node stands on: `["a", "a", "b"]` is three nodes, the last beyond the router. */
  readonly nodes: readonly Link[];
  /** Default: 1, since three that nobody asks anything take ten times its processor time. */
  readonly registryMembers?: 1 | 3;
  /** Default: `ovs`. */
  readonly dataPath?: LabDataPath;
  /** Default: `outer-bridge`, on a kernel bridge `plain`. */
  readonly nic?: NicShape;
  /** Keys of the agents' section `ovs`: mode, tunnel, tenants … */
  readonly ovs?: {
    readonly mode?: TrafficMode;
    readonly tunnel?: string;
    readonly tenants?: string;
    readonly encryption?: string;
    readonly wireguard?: object;
    readonly ipsec?: object;
    readonly clusterSubnets?: readonly string[];
    readonly services?: { readonly file: string; readonly cidrs?: readonly string[] };
  };
  /** How often nodes ask each other whether pods are reached. Default: never, so that nothing but pods is on the wire. */
  readonly probeIntervalMs?: number;
  /** Nodes have strongSwan, of which that encrypts. */
  readonly esp?: LabEsp;
  /** Where a node joins. Default: the lab's own etcd. */
  readonly registry?: (node: string) => object;
  /** Nodes have no addresses of IPv4; the lab's own etcd has no others. */
  readonly onlyIpv6?: boolean;
  /** More sections of a node's agent.yaml. */
  readonly sections?: (node: string) => object;
}

/** A cluster on one machine. Nothing of it outlives this process, however that ends. */
export class Lab implements AsyncDisposable {
  readonly underlay: Underlay;
  readonly #nodes = new Map<string, LabNode>();
  readonly #options: LabOptions;
  readonly #stack = new AsyncDisposableStack();
  /** Of all its files. */
  readonly directory: string;
  #etcd: EtcdCluster | undefined;
  #numbered = 0;

  private constructor(options: LabOptions) {
    this.#options = options;
    this.directory = this.#stack.use(scratchUntilEnd("pt-lab-")).path;
    this.underlay = this.#stack.use(Underlay.create());
  }

  /** The members are numbered from 0. */
  get etcd(): EtcdCluster {
    if (this.#etcd === undefined) throw new Error("There is no registry in this lab");
    return this.#etcd;
  }

  /** The links and the nodes with their switches, all side by side: without registry and agents. */
  static ground(options: LabOptions): Promise<Lab> {
    return Lab.#made(options, async (lab) => {
      await lab.underlay.start();
      await allOf(options.nodes.map((link) => lab.addNode(link)));
    });
  }

  /** All of it: the agents have joined. */
  static start(options: LabOptions): Promise<Lab> {
    return Lab.#made(options, async (lab) => {
      await lab.underlay.start();
      await allOf([lab.startRegistry(), ...options.nodes.map((link) => lab.addNode(link))]);
      await allOf(lab.nodes.map((node) => node.startAgent()));
      await allOf(lab.nodes.map((node) => lab.hearsOthers(node)));
    });
  }

  static async #made(options: LabOptions, start: (lab: Lab) => Promise<void>): Promise<Lab> {
    const lab = new Lab(options);
    try {
      await start(lab);
      return lab;
    } catch (caught) {
      await lab[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** In the order of their numbers. */
  get nodes(): readonly LabNode[] {
    return [...this.#nodes.values()].sort((a, b) => a.number - b.number);
  }

  /** One by its number, from 1. */
  node(number: number): LabNode {
    const node = this.#nodes.get(`n${number}`);
    if (node === undefined) throw new Error(`There is no node ${number} in the lab`);
    return node;
  }

  /** One more, with its switch; its agent does not run yet. */
  async addNode(link: Link): Promise<LabNode> {
    const number = ++this.#numbered;
    const {
      dataPath = "ovs",
      ovs = {},
      sections,
      esp,
      registry: other,
      onlyIpv6 = false,
      probeIntervalMs = 0,
    } = this.#options;
    const usual = esp !== undefined ? "kernel" : dataPath === "ovs" ? "outer-bridge" : "plain";
    const { nic = usual } = this.#options;
    const registry = {
      type: "etcd",
      endpoints: this.#members.map((address) => `http://${address}:2379`),
      networks: clusterNetworks,
    };
    const name = `n${number}`;
    const config = { ...sections?.(name), ovs, nodes: { registry: other?.(name) ?? registry, probeIntervalMs } };
    const hasOwnRun = ovs.encryption !== undefined;
    const strongSwan = esp === undefined ? {} : { esp };
    const place = {
      number,
      link,
      nic,
      dataPath,
      executables,
      hasOwnRun,
      onlyIpv6,
      ...strongSwan,
      parent: this.directory,
    };
    const node = await LabNode.start({ ...place, config }, this.underlay);
    this.#nodes.set(node.name, node);
    return node;
  }

  /**
   * Waits until a node knows what it is to know of all others: it is ready a moment before. With a kernel bridge these
   * are the routes to those on its link; with a switch the flows to all, and the MACs behind which tunnels end.
   */
  async hearsOthers(node: LabNode): Promise<void> {
    const others = this.nodes.filter((other) => other !== node);
    const near = others.filter(({ link }) => link === node.link);
    if (this.#options.dataPath === "bridge") {
      const wanted = 2 * near.length;
      await eventually(
        async () => (await routesOf(node)).length === wanted,
        `${node.name} to hear of its link's nodes`,
      );
      return;
    }
    const { mode = "encap", encryption } = this.#options.ovs ?? {};
    if (mode === "networkPolicyOnly") return;
    const nodes = await node.pipette("nodes", "list", "--json", "--config", node.home.configFile);
    const registered: readonly { readonly name: string; readonly subnets: readonly string[] }[] =
      JSON.parse(nodes).nodes;
    const subnets = registered.filter(({ name }) => name !== node.name).flatMap((other) => other.subnets);
    const tunnelled =
      mode === "noEncap" || encryption === "wireguard"
        ? []
        : mode === "hybrid"
          ? others.filter((other) => !near.includes(other))
          : others;
    // What is beyond the router is behind the router's MAC.
    const hops = tunnelled.map((other) => (near.includes(other) ? other.addresses : routerOn(node.link))[0]);
    await eventually(
      async () => {
        const flows = (await node.flows()).join("\n");
        const known = hops.length === 0 ? "" : await node.vswitch.switchControl("tnl/neigh/show");
        return subnets.every((subnet) => flows.includes(subnet)) && hops.every((hop) => known.includes(`${hop} `));
      },
      `${node.name} to know ${subnets.join(", ")} behind ${hops.join(", ")}`,
    );
  }

  /** What each node's switch has dropped by itself, and whom it knows: for a test that has lost a packet. */
  async drops(): Promise<string> {
    const told = await Promise.all(
      this.nodes.map(async (node) => {
        const counted = await node.vswitch.switchControl("coverage/show");
        const dropped = counted.split("\n").filter((line) => /drop|_error|lost/.test(line) && !/total: 0$/.test(line));
        const known = await node.vswitch.switchControl("tnl/neigh/show");
        return [node.name, ...dropped, known].join("\n");
      }),
    );
    return told.join("\n\n");
  }

  /** Takes a node off the machine: its agent, its switch, its pods' namespaces. The registry is not told. */
  async removeNode(node: LabNode): Promise<void> {
    this.#nodes.delete(node.name);
    await node[Symbol.asyncDispose]();
  }

  get #members(): readonly string[] {
    return etcdMembers.slice(0, this.#options.registryMembers ?? 1);
  }

  /** The members of etcd, between the nodes. */
  async startRegistry(): Promise<void> {
    const { within } = this.underlay.namespace;
    const members: readonly MemberPlace[] = this.#members.map((address) => ({ address, within }));
    this.#etcd = this.#stack.use(await EtcdCluster.start({ members, parent: this.directory }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => this.removeNode(node)));
    await this.#stack.disposeAsync();
  }
}

/** Waits for all, also where one fails: what still comes to be then could not be taken away. */
async function allOf(all: readonly Promise<unknown>[]): Promise<void> {
  for (const one of await Promise.allSettled(all)) if (one.status === "rejected") throw one.reason;
}
