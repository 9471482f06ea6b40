import type { StressNode } from "../node/stress-node.ts";
import { injecting, Watched } from "../steps.ts";
import type { Fault } from "../workload/fault.ts";
import { bridgeNode } from "./on-bridge.ts";

/** While nobody answers: an ADD is to come again, a DEL is done later, nobody can tell how a pod is. */
const unanswered = { ADD: [11], CHECK: [11], STATUS: [50] } as const;
const everywhere = ["bridge", "ovs", "hns"] as const;

const killed: Fault = {
  name: "the agent is killed",
  endsAgent: true,
  on: everywhere,
  refusals: unanswered,
  strike: async (node) => {
    await node.endAgent("SIGKILL");
    return startedAgain(node, "the agent");
  },
};

const restarted: Fault = {
  name: "the agent is stopped and started again",
  endsAgent: true,
  on: everywhere,
  refusals: unanswered,
  strike: async (node) => {
    await node.endAgent("SIGTERM");
    return startedAgain(node, "the agent");
  },
};

const frozen: Fault = {
  name: "the agent is frozen",
  on: everywhere,
  // It may hold the database's lock meanwhile, so that nothing can be written down: then the runtime has to come again.
  refusals: { ...unanswered, DEL: [11], GC: [11] },
  strike: async (node) => {
    node.freezeAgent();
    return { what: "the agent", lost: [], [Symbol.asyncDispose]: async () => node.thawAgent() };
  },
};

/** Calls by which the agent changes something, or lets go of it. */
const changing = ["sendto", "pwrite64", "setns", "openat", "close", "recvfrom"] as const;

const killedInside: Fault = {
  name: "the agent is killed in the middle of a call",
  endsAgent: true,
  on: ["bridge", "ovs"],
  refusals: unanswered,
  strike: async (node, _pods, random) => {
    const point = { name: changing[random(changing.length)] ?? "sendto", nth: 1 + random(40) };
    const watched = await Watched.watch(bridgeNode(node).agent.pid, injecting(point, "KILL"));
    const end = async (): Promise<void> => {
      await watched[Symbol.asyncDispose]();
      // Where so much was not to be done.
      await node.endAgent("SIGKILL");
      await node.startAgent();
    };
    return { what: `the agent at ${point.name} ${point.nth}`, lost: [], [Symbol.asyncDispose]: end };
  },
};

const startedAgain = (node: StressNode, what: string) => ({
  what,
  lost: [],
  [Symbol.asyncDispose]: () => node.startAgent(),
});

export const agentFaults: readonly Fault[] = [killed, killedInside, restarted, frozen];
