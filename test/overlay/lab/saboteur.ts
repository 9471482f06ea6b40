import { type LabNode, podBridges } from "./lab-node.ts";

/** A command of ovs-ofctl, and the flow or match that it takes. */
export type FlowChange = readonly ["add-flow" | "del-flows", string];

/**
 * Somebody who changes flows again and again while `work` goes on: what is changed once the agent has put right before
 * anybody could look.
 */
export async function withSaboteur<T>(
  { namespace, vswitch }: LabNode,
  changes: readonly FlowChange[],
  work: () => Promise<T>,
): Promise<T> {
  const target = `unix:${vswitch.management(podBridges.ovs)}`;
  const lines = changes.map(([command, flow]) => `ovs-ofctl -O OpenFlow15 ${command} '${target}' '${flow}'`);
  const script = ["for i in $(seq 600); do", ...lines, "sleep 0.05; done"].join("\n");
  const running = namespace.start(["setpriv", "--pdeathsig", "KILL", "sh", "-c", script]);
  try {
    return await work();
  } finally {
    process.kill(running.pid, "SIGKILL");
    await running.ended;
  }
}
