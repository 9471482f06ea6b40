import { createBridgeDataPath } from "../../agent/datapath/bridge/mod.ts";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import type { NodePolicies, Verdict } from "../../agent/datapath/policies.ts";
import type { PolicedNode } from "../policies/probed-pods.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import type { NetworkSandbox } from "../support/network-sandbox.ts";
import { bridgeName, cidr, loggerInto } from "./bridge-fixture.ts";

type Told = (verdict: Verdict) => void;

/**
 * Nodes with kernel bridges, on one link: the first is the sandbox's own, the second is behind it. Only on the second do
 * frames in a bridge pass the node's own packet rules (`br_netfilter`), where this kernel has that.
 */
export class BridgeNodes implements AsyncDisposable {
  readonly nodes: PolicedNode[] = [];
  /** What data paths logged at `warn` or above. */
  readonly lines: string[] = [];
  readonly #stack = new AsyncDisposableStack();
  readonly #open = new Map<string, (known?: NodePolicies, told?: Told) => Promise<DataPath>>();

  static async start(
    sandbox: NetworkSandbox,
    names: readonly string[],
    subnets = ["10.77.0.0/24", "fd77::/64"],
  ): Promise<BridgeNodes> {
    const made = new BridgeNodes();
    const [first, second] = names;
    await made.#add(sandbox, first ?? "", subnets, (work) => work());
    if (second === undefined) return made;
    const home = made.#stack.use(NetworkNamespace.current());
    const other = made.#stack.use(NetworkNamespace.create());
    await made.#add(sandbox, second, ["10.78.0.0/24", "fd78::/64"], async (work) => {
      other.enter();
      try {
        return await work();
      } finally {
        home.enter();
      }
    });
    await other.ip("link set lo up", `link add up0 type veth peer name up1 netns ${home.path}`);
    await other.ip(
      "link set up0 up",
      "addr add 192.0.2.2/24 dev up0",
      "addr add 2001:db8::2/64 dev up0 nodad",
      "route add 10.77.0.0/24 via 192.0.2.1",
    );
    await home.ip(
      "link set up1 up",
      "addr add 192.0.2.1/24 dev up1",
      "addr add 2001:db8::1/64 dev up1 nodad",
      "route add 10.78.0.0/24 via 192.0.2.2",
      "route add fd78::/64 via 2001:db8::2",
    );
    await other.ip("route add fd77::/64 via 2001:db8::1");
    return made;
  }

  /**
   * The data path that the next agent has.
   * @param known the policies that it knows at its start; absent: it enforces none
   * @param told is to hear of all verdicts
   */
  reopen(name: string, known?: NodePolicies, told?: Told): Promise<DataPath> {
    const open = this.#open.get(name);
    if (open === undefined) throw new Error(`there is no node "${name}"`);
    return open(known, told);
  }

  async #add(
    sandbox: NetworkSandbox,
    name: string,
    blocks: readonly string[],
    within: PolicedNode["within"],
  ): Promise<void> {
    const subnets = blocks.map(cidr);
    const filtered = this.nodes.length;
    for (const tables of ["iptables", "ip6tables"])
      await within(() => sandbox.node(`sysctl -q -e -w net.bridge.bridge-nf-call-${tables}=${filtered}`));
    const open = (known?: NodePolicies, told?: Told): Promise<DataPath> =>
      within(async () => {
        const network = { name: "pods", subnets, bridge: bridgeName, hairpin: true, masquerade: false };
        const made = createBridgeDataPath({
          networks: [network],
          leasedTo: () => [],
          logger: loggerInto(this.lines),
        });
        this.#stack.defer(() => within(async () => made[Symbol.asyncDispose]()));
        if (told !== undefined) made.policies?.report?.("all", told);
        if (known !== undefined) await made.policies?.enforce(known);
        await made.start();
        return made;
      });
    this.#open.set(name, open);
    const dataPath = await open();
    const links: { address: string }[] = JSON.parse(await within(() => sandbox.node(`ip -j link show ${bridgeName}`)));
    const mac = links[0]?.address ?? "";
    this.nodes.push({ name, dataPath, within, subnets, mac });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
