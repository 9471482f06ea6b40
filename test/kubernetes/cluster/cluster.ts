import { routerOn } from "../../overlay/lab/addresses.ts";
import { scratchUntilEnd } from "../../overlay/lab/scratch-until-end.ts";
import { Underlay } from "../../overlay/lab/underlay.ts";
import { eventually } from "../../support/agent-process.ts";
import { ControlPlane } from "./control-plane.ts";
import { makeClusterImages } from "./images.ts";
import { KubeletNode, type KubeletNodeSpec, nodeName } from "./kubelet-node.ts";

/** For dozens of pods of a machine that has much else to do: not how long it takes, but when it is given up. */
const longestSeconds = 120;
const longestMs = (longestSeconds + 5) * 1000;

/**
 * A Kubernetes of real parts on one machine: the control plane in the network between the nodes, which the calling
 * thread moves into, and the nodes. Nothing of it outlives this process.
 */
export class Cluster implements AsyncDisposable {
  readonly directory: string;
  readonly underlay: Underlay;
  readonly plane: ControlPlane;
  readonly nodes: KubeletNode[] = [];
  readonly #images: readonly string[];
  readonly #stack: AsyncDisposableStack;

  private constructor(
    directory: string,
    underlay: Underlay,
    plane: ControlPlane,
    images: readonly string[],
    stack: AsyncDisposableStack,
  ) {
    this.directory = directory;
    this.underlay = underlay;
    this.plane = plane;
    this.#images = images;
    this.#stack = stack;
  }

  /**
   * @param count of nodes that may join
   * @param images makes archives of the images that every node has from the start, in a directory
   */
  static async start(count: number, images = makeClusterImages): Promise<Cluster> {
    await using stack = new AsyncDisposableStack();
    const directory = stack.use(scratchUntilEnd("pt-kube-")).path;
    const underlay = stack.use(Underlay.create());
    await underlay.start();
    underlay.namespace.enter();
    const names = Array.from({ length: count }, (_, i) => nodeName(i + 1));
    const plane = stack.use(await ControlPlane.start(directory, routerOn("a")[0], names));
    return new Cluster(directory, underlay, plane, images(directory), stack.move());
  }

  node(name: string): KubeletNode {
    const node = this.nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`There is no node "${name}" in the cluster`);
    return node;
  }

  /** Waits until all pods of a deployment are there, and ready. */
  async rolledOut(name: string): Promise<void> {
    await this.plane.kubectl(`rollout status deployment/${name} --timeout=${longestSeconds}s`, longestMs);
  }

  /** Waits until as many pods of a deployment are ready. */
  async haveReady(name: string, pods: number): Promise<void> {
    const what = `--for=jsonpath={.status.readyReplicas}=${pods}`;
    await this.plane.kubectl(`wait deployment ${name} ${what} --timeout=${longestSeconds}s`, longestMs);
  }

  /** Waits until the API server knows every node, and the pods' blocks of each: its kubelet only runs before that. */
  async joined(): Promise<void> {
    for (const { name } of this.nodes) {
      const blocks = () => this.plane.kubectl(`get node ${name} --ignore-not-found -o jsonpath={.spec.podCIDRs}`);
      await eventually(async () => (await blocks()) !== "", `the blocks of ${name}`);
    }
  }

  /** Until every pod that the API server and the runtimes knew is gone, but for the agents. */
  async clear(): Promise<void> {
    await this.plane.kubectl("delete deployments,services -l made=by-tests --wait=false");
    await this.plane.kubectl("wait pods --all --for=delete --timeout=60s");
  }

  /** @returns once its kubelet runs; it is not ready before it has a network for pods */
  async addNode(kind: Pick<KubeletNodeSpec, "containerd" | "hasSwitch" | "managed">): Promise<KubeletNode> {
    const { plane, underlay } = this;
    const place = { number: this.nodes.length + 1, plane, underlay, images: this.#images };
    const node = await KubeletNode.start({ ...place, ...kind });
    this.nodes.push(node);
    return node;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
    await this.#stack.disposeAsync();
  }
}
