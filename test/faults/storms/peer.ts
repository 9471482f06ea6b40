import { join } from "node:path";
import { startCommand } from "../../support/cni-call.ts";
import type { BridgeNode } from "../node/bridge-node.ts";
import { outcomeOf, type PodVerb, podVariables, previousOf } from "../node/runtime-call.ts";
import type { StressNode, StressOutcome, StressPod } from "../node/stress-node.ts";
import { exactRanges } from "./exact-pool.ts";

const bridge = "peer0";

/**
 * Debian's bridge and host-local on the same machine, beside our node: what of a storm they can do, that is ADD and DEL.
 * @param plugins their directory
 * @param addresses how many there are for pods
 */
export function peerOf(node: BridgeNode, plugins: string, addresses: number): StressNode {
  const dataDir = join(node.machine.directory, "host-local");
  const conf = {
    cniVersion: "1.0.0",
    name: "peer",
    type: "bridge",
    bridge,
    isGateway: true,
    ipMasq: true,
    ipam: { type: "host-local", dataDir, ranges: exactRanges(addresses) },
  };
  const refuse = (what: string) => (): never => {
    throw new Error(`Cannot ${what}: the node's plugins have no agent, wanted one of ours`);
  };
  return {
    kind: "bridge",
    deadlineMs: node.deadlineMs,
    makePod: () => node.makePod(),
    removePod: (pod) => node.removePod(pod),
    call: async (verb: PodVerb, pod: StressPod): Promise<StressOutcome> => {
      const command = [...node.machine.prefix, join(plugins, "bridge")];
      const text = JSON.stringify({ ...conf, ...previousOf(verb, pod) });
      return outcomeOf(await startCommand(command, podVariables(verb, pod, plugins), text).ended);
    },
    reaches: (pod) => node.reaches(pod),
    disagreements: async () => [],
    gc: refuse("collect garbage"),
    status: refuse("ask for the status"),
    problems: refuse("ask for its problems"),
    startAgent: refuse("start the agent"),
    endAgent: refuse("end the agent"),
    freezeAgent: refuse("freeze the agent"),
    thawAgent: refuse("thaw the agent"),
    agentRuns: () => false,
    holdings: refuse("look at the agent"),
    databaseBytes: async () => 0,
    agentLog: () => [],
    [Symbol.asyncDispose]: async () => {
      await node.machine.run(`ip link del ${bridge}`).catch(() => undefined);
    },
  };
}
