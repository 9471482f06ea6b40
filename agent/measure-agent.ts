import type { DataPath } from "./datapath/datapath.ts";
import type { AgentSamples } from "./metrics/meter.ts";
import type { NodePolicies } from "./policies/mod.ts";
import type { AgentContext } from "./reconcile/mod.ts";
import { usageOf } from "./server/node-service.ts";
import type { NodeServices } from "./services/mod.ts";

/** What of an agent a scrape asks; parts that are not there (yet) have no numbers. */
export interface MeasuredAgent {
  readonly context: AgentContext;
  readonly isReady: boolean;
  /** What keeps the node from giving pods a network. */
  outages(): Promise<readonly unknown[]>;
  /** Other nodes by their state, and records of some that are refused; absent: the node is no member of a cluster. */
  readonly peers: Readonly<Record<string, number>> | undefined;
  readonly dataPath: DataPath | undefined;
  readonly policies: NodePolicies | undefined;
  readonly services: NodeServices | undefined;
}

/** Tells a scrape all that is there now. One part that cannot tell keeps none of the others from it. */
export async function measureAgent(agent: MeasuredAgent, samples: AgentSamples): Promise<void> {
  const { context, isReady, peers, dataPath, policies, services } = agent;
  samples.set("pipette_agent_ready", {}, isReady ? 1 : 0);
  if (peers !== undefined)
    for (const [state, count] of Object.entries(peers)) samples.set("pipette_peers", { state }, count);
  const parts = [
    () => measureAddresses(context, samples),
    () => dataPath?.measure?.(samples),
    () => services?.measure(samples),
    () => policies?.measure(samples),
    async () => samples.set("pipette_node_problems", {}, (await agent.outages()).length),
  ];
  await Promise.allSettled(parts.map(async (part) => await part()));
}

/** Each address of a network's ranges in one state: all of them together are the ranges. */
function measureAddresses(context: AgentContext, samples: AgentSamples): void {
  for (const network of context.config.networks) {
    // A node that has not joined has no subnet.
    if (network.subnets.length === 0) continue;
    const all = usageOf(context, network);
    const sum = (of: (usage: (typeof all)[number]) => number | bigint): number =>
      all.reduce((total, usage) => total + Number(of(usage)), 0);
    const states = {
      allocated: sum(({ used, releasing }) => used - releasing),
      releasing: sum(({ releasing }) => releasing),
      cooling: sum(({ cooling }) => cooling),
      free: sum(({ free }) => free),
      excluded: sum(({ excluded, gateways }) => excluded + gateways),
    };
    for (const [state, count] of Object.entries(states))
      samples.set("pipette_ipam_addresses", { network: network.name, state }, count);
  }
}
