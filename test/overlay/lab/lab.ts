import { executables } from "../../conformance/plugin.ts";
import type { Link } from "./addresses.ts";
import { LabNode, type NicShape } from "./lab-node.ts";
import { scratchUntilEnd } from "./scratch-until-end.ts";
import { Underlay } from "./underlay.ts";

export interface LabOptions {
  /** The link that each node stands on: `["a", "a", "b"]` is three nodes, the last beyond the router. */
  readonly nodes: readonly Link[];
  /** Default: `outer-bridge`. */
  readonly nic?: NicShape;
  /** Keys of the agents' section `ovs`: mode, tunnel, tenants … */
  readonly ovs?: object;
}

/** A cluster on one machine. Nothing of it outlives this process, however that ends. */
export class Lab implements AsyncDisposable {
  readonly underlay: Underlay;
  readonly #nodes = new Map<string, LabNode>();
  readonly #options: LabOptions;
  readonly #made = new AsyncDisposableStack();
  /** Of all its files. */
  readonly directory: string;
  #numbered = 0;

  private constructor(options: LabOptions) {
    this.#options = options;
    this.directory = this.#made.use(scratchUntilEnd("pt-lab-")).path;
    this.underlay = this.#made.use(Underlay.create());
  }

  /** The nodes with their switches, side by side; no agent runs yet. */
  static async start(options: LabOptions): Promise<Lab> {
    const lab = new Lab(options);
    try {
      await lab.underlay.start();
      await Promise.all(options.nodes.map((link) => lab.addNode(link)));
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
    const { nic = "outer-bridge", ovs = {} } = this.#options;
    const config = { ovs };
    const node = await LabNode.start({ number, link, nic, executables, parent: this.directory, config }, this.underlay);
    this.#nodes.set(node.name, node);
    return node;
  }

  /** Takes a node off the machine: its agent, its switch, its pods' namespaces. The registry is not told. */
  async removeNode(node: LabNode): Promise<void> {
    this.#nodes.delete(node.name);
    await node[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => this.removeNode(node)));
    await this.#made.disposeAsync();
  }
}
