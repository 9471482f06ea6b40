import type { PipelineContext } from "../../../agent/datapath/ovs/pipeline/context.ts";
import { Category } from "../../../agent/datapath/ovs/pipeline/cookie.ts";
import { baseFlows, peerFlows, podFlows } from "../../../agent/datapath/ovs/pipeline/mod.ts";
import type { FlowSet } from "../../../agent/datapath/ovs/program/flow-set.ts";
import { type Cidr, ipOf } from "../../../shared/net/ip.ts";

/** How much is on one node's switch. */
export interface NodeSize {
  readonly pods: number;
  readonly peers: number;
}

const block = (value: bigint, length: number): Cidr => ({ ip: ipOf(4, value), prefix: length });
const [podNetwork, nodeNetwork] = [0x0a80_0000n, 0xac1e_0000n];
const macOf = (start: string, number: number): string => {
  const digits = number.toString(16).padStart(8, "0");
  return `${start}:${[0, 2, 4, 6].map((at) => digits.slice(at, at + 2)).join(":")}`;
};

/** The parts that the agent gives the switch of such a node, in a tunnelled cluster of /23 subnets. */
export function nodeParts({ pods, peers }: NodeSize): ReadonlyMap<string, FlowSet> {
  const gateway = { ofport: 32769, mac: macOf("0e:00", 1), addresses: [ipOf(4, podNetwork + 1n)] };
  const context: PipelineContext = {
    mode: "encap",
    gateway,
    tunnel: { ofport: 32768, type: "geneve" },
    nodeAddresses: [block(nodeNetwork + 1n, 16)],
    podSubnets: [block(podNetwork, 23)],
    multitenant: false,
  };
  const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i + 1);
  return new Map<string, FlowSet>([
    ["base", { category: Category.base, flows: baseFlows(context) }],
    ...numbers(pods).map((i): [string, FlowSet] => {
      const pod = { ofport: i, mac: macOf("0a:00", i), ips: [ipOf(4, podNetwork + 1n + BigInt(i))], vnid: 0 };
      return [`pod/${i}`, { category: Category.pod, flows: podFlows(context, pod) }];
    }),
    ...numbers(peers).map((i): [string, FlowSet] => {
      const address = ipOf(4, nodeNetwork + 1n + BigInt(i));
      const subnets = [block(podNetwork + BigInt(i) * 512n, 23)];
      const peer = { name: `node${i}`, uid: String(i), addresses: [address], subnets };
      return [`node/${i}`, { category: Category.node, flows: peerFlows(context, peer) }];
    }),
  ]);
}
