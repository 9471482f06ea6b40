import { linkGroup } from "../../agent/datapath/linux/host-links.ts";
import { executables } from "../conformance/plugin.ts";
import { nodeOn } from "./lab/addresses.ts";
import { type LabDataPath, LabNode, type NicShape, podBridges } from "./lab/lab-node.ts";
import { scratchUntilEnd } from "./lab/scratch-until-end.ts";
import { Underlay } from "./lab/underlay.ts";

export const subnets = ["10.10.1.0/24", "fd10:0:0:1::/64"] as const;
export const gateways = ["10.10.1.1", "fd10:0:0:1::1"] as const;

/** One node without a registry, on a link that leads to a router. */
export class SingleNode implements AsyncDisposable {
  readonly underlay: Underlay;
  readonly node: LabNode;
  readonly #stack: AsyncDisposableStack;

  private constructor(stack: AsyncDisposableStack, underlay: Underlay, node: LabNode) {
    this.#stack = stack;
    this.underlay = underlay;
    this.node = node;
  }

  /**
   * The agent does not run yet.
   * @param more other sections of agent.yaml
   */
  static async ground(
    ovs: object = {},
    nic: NicShape = "outer-bridge",
    more: object = {},
    dataPath: LabDataPath = "ovs",
  ): Promise<SingleNode> {
    await using stack = new AsyncDisposableStack();
    const parent = stack.use(scratchUntilEnd("pt-one-")).path;
    const underlay = stack.use(Underlay.create());
    await underlay.start();
    const config = {
      networks: [{ name: "pods", bridge: podBridges[dataPath], subnets }],
      ovs: { nodeAddresses: nodeOn("a", 1), ...ovs },
      janitorIntervalMs: 200,
      ...more,
    };
    const spec = { number: 1, link: "a", nic, dataPath, executables, parent, config } as const;
    const node = stack.use(await LabNode.start(spec, underlay));
    return new SingleNode(stack.move(), underlay, node);
  }

  static async start(ovs: object = {}, nic?: NicShape): Promise<SingleNode> {
    const single = await SingleNode.ground(ovs, nic);
    try {
      await single.node.startAgent();
      return single;
    } catch (caught) {
      await single[Symbol.asyncDispose]();
      throw caught;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Names of the pods' ports in the database, sorted. */
export async function podPortsOf({ node }: SingleNode): Promise<readonly string[]> {
  const names = await node.vswitch.vsctl(
    ...["--bare", "--columns=name", "find", "Port"],
    "external_ids:pipette-type=pod",
  );
  return names
    .split("\n")
    .filter((name) => name !== "")
    .sort();
}

/** As `ip` says them. */
const passing = new Set([linkGroup.beingMade, linkGroup.toDelete].map(String));

/** Names of the node's interfaces, sorted. What is in a group is coming or going: a deletion goes on behind DEL's back. */
export async function linksOf({ node }: SingleNode): Promise<readonly string[]> {
  const links: { ifname: string; group: string }[] = JSON.parse(await node.namespace.run("ip -j link"));
  return links
    .filter(({ group }) => !passing.has(group))
    .map(({ ifname }) => ifname)
    .sort();
}
