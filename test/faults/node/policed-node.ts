import { PolicySet } from "../../../agent/policies/policy-set.ts";
import { RuleStore } from "../../../agent/policies/rule-store.ts";
import { textOf } from "../../../agent/policies/state-file.ts";
import { PrivateNode } from "../../support/private-node.ts";
import { BridgeNode, type BridgeNodeOptions } from "./bridge-node.ts";
import { gatewaysOf } from "./runtime-call.ts";
import { type StressPod, withAgent } from "./stress-node.ts";

/** What the agent rightly says while nobody answers: of itself, and of each pod. */
const saysSo = [
  /^shortcoming: The controller of network policies is not followed, /,
  /^shortcoming: Sandbox ".*" of "stress\/.*" is isolated: its network policies are not known$/,
];

/**
 * A node with a kernel bridge that is to enforce network policies and whose controller has gone before it knew of any
 * pod: each of its pods is closed, from its ADD to its DEL.
 */
export class PolicedNode extends BridgeNode {
  static override async start(options: BridgeNodeOptions = {}): Promise<PolicedNode> {
    const policies = { controller: "http://127.0.0.1:1", waitMs: 0 };
    const agent = { ...options.agent, policies };
    const node = new PolicedNode(await PrivateNode.start(), { ...options, agent });
    await node.equip(options);
    await node.#remember();
    return withAgent(node);
  }

  /** What the controller has said, as an agent keeps it: everything, which was nothing. */
  async #remember(): Promise<void> {
    const store = new RuleStore();
    store.replace(new PolicySet(), true);
    const { dataDir } = this.home;
    const write = `umask 077; mkdir -p ${dataDir}; base64 -d > ${dataDir}/policies.state`;
    await this.machine.runWords(["sh", "-c", `echo ${Buffer.from(textOf(store)).toString("base64")} | { ${write}; }`]);
  }

  /** The node reaches it, as probes do, and it reaches nobody by itself. */
  override async reaches({ netns, addresses, result }: StressPod): Promise<boolean> {
    const probes = await Promise.all(addresses.map((address) => this.machine.ping(undefined, address)));
    const ways = await Promise.all(gatewaysOf(result).map((gateway) => this.machine.ping(netns, gateway)));
    return probes.length > 0 && probes.every(Boolean) && !ways.some(Boolean);
  }

  protected override isExplained(line: string): boolean {
    return super.isExplained(line) || saysSo.some((each) => each.test(line));
  }

  protected override async strayElements(pods: readonly StressPod[]): Promise<readonly string[]> {
    return [...(await super.strayElements(pods)), ...(await this.#strayPolicies(pods))];
  }

  /** What leads packets to pods' rules; chains that nothing leads to any more are swept with the next change. */
  async #strayPolicies(pods: readonly StressPod[]): Promise<readonly string[]> {
    const addresses = (family: 4 | 6): number =>
      pods.flatMap((pod) => pod.addresses).filter((address) => address.includes(":") === (family === 6)).length;
    const wanted = { from4: addresses(4), to4: addresses(4), from6: 2 * addresses(6), to6: 2 * addresses(6) };
    const found = await Promise.all(
      Object.entries(wanted).map(async ([map, count]) => {
        const is = await this.elementsOf("map", `inet pipette-policies-pipette0 ${map}`);
        return is === count ? [] : [`${is} addresses lead to rules by the map "${map}", wanted ${count}`];
      }),
    );
    const closed = await Promise.all(
      ["closed-from", "closed-to"].map(async (set) => {
        const is = await this.elementsOf("set", `bridge pipette-pipette0 ${set}`);
        return is === pods.length ? [] : [`${is} ports are in the set "${set}", wanted ${pods.length}`];
      }),
    );
    return [...found, ...closed].flat();
  }
}
