import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BridgeNode } from "../node/bridge-node.ts";
import { hostEnd } from "../node/runtime-call.ts";
import type { StressKind, StressPod } from "../node/stress-node.ts";
import type { Fault } from "../workload/fault.ts";
import { bridgeNode } from "./on-bridge.ts";

type Lines = readonly string[];
const nothing = async (): Promise<void> => undefined;

/** Somebody's hand takes something that one pod needs. It is for its runtime to find out, and to make it anew. */
function takenFromPod(name: string, take: (node: BridgeNode, pod: StressPod) => Promise<unknown>): Fault {
  return {
    name,
    on: ["bridge", "ovs"],
    refusals: { ADD: [4, 102, 11], CHECK: [4, 103] },
    strike: async (node, pods, random) => {
      const pod = pods[random(Math.max(1, pods.length))];
      if (pod === undefined) return { what: "nobody, since no pod stands", lost: [], [Symbol.asyncDispose]: nothing };
      // It may be about to go already.
      await take(bridgeNode(node), pod).catch(() => undefined);
      return { what: pod.containerId.slice(0, 8), lost: [pod], [Symbol.asyncDispose]: nothing };
    },
  };
}

/** And something that all of them need, which the agent puts back. */
const takenFromNode = (name: string, on: readonly StressKind[], ...commands: Lines): Fault => ({
  name,
  on,
  interrupts: true,
  refusals: { ADD: [102, 11], CHECK: [103], STATUS: [50, 51] },
  strike: async (node) => {
    for (const command of commands) await bridgeNode(node).machine.run(command);
    return { what: commands.join(", "), lost: [], [Symbol.asyncDispose]: nothing };
  },
});

/** Something by which the agent is found or by which it knows what it knows: it ends, and its supervisor starts it. */
const takenFromAgent = (name: string, take: (node: BridgeNode) => unknown): Fault => ({
  name,
  on: ["bridge", "ovs"],
  endsAgent: true,
  refusals: { ADD: [11, 101], DEL: [11, 101], GC: [11, 101], CHECK: [11, 101, 103], STATUS: [50] },
  strike: async (node) => {
    await take(bridgeNode(node));
    const end = async (): Promise<void> => {
      // By itself: its supervisor would wait as well.
      for (let i = 0; i < 1000 && node.agentRuns(); i++) await Bun.sleep(10);
      if (node.agentRuns()) throw new Error("The agent has noticed nothing within ten seconds, wanted it to end");
      await node.startAgent();
    };
    return { what: "the agent", lost: [], [Symbol.asyncDispose]: end };
  },
});

/** What its runtime reads; `pipette doctor --repair` puts it right. */
const conflistChanged = (name: string, change: (path: string) => void): Fault => ({
  name,
  on: ["bridge", "ovs"],
  refusals: {},
  strike: async (node) => {
    const { home, machine, executables } = bridgeNode(node);
    change(home.conflist);
    const repair = [join(executables, "pipette"), "doctor", "--repair", "--config", home.configFile];
    // What else it finds, after other faults, is told by its status; whoever looks afterwards hears what it has not repaired.
    const end = async (): Promise<void> => void (await machine.runWords(repair).catch(() => undefined));
    return { what: home.conflist, lost: [], [Symbol.asyncDispose]: end };
  },
});

export const behindOurBack: readonly Fault[] = [
  takenFromPod("a pod's interface is removed", ({ machine }, { netns, ifname }) =>
    machine.runIn(netns, `ip link del ${ifname}`),
  ),
  takenFromPod("the node's end of a pod's interface is removed", ({ machine }, { result }) =>
    machine.run(`ip link del ${hostEnd(result)}`),
  ),
  takenFromPod("a pod's namespace is deleted", ({ machine }, { netns }) =>
    machine.run(`ip netns del ${netns.slice(netns.lastIndexOf("/") + 1)}`),
  ),
  takenFromNode("the bridge is removed", ["bridge"], "ip link del pipette0"),
  takenFromNode("the bridge is taken down", ["bridge"], "ip link set pipette0 down"),
  takenFromNode("the gateway's addresses are removed", ["bridge"], "ip addr flush dev pipette0 scope global"),
  takenFromNode("the gateway's addresses are removed", ["ovs"], "ip addr flush dev pipette-gw0 scope global"),
  takenFromNode("the gateway is taken down", ["ovs"], "ip link set pipette-gw0 down"),
  takenFromNode("the gateway is removed", ["ovs"], "ip link del pipette-gw0"),
  takenFromNode(
    "forwarding is turned off",
    ["bridge", "ovs"],
    "sysctl -q -w net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0",
  ),
  takenFromNode("the packet rules are flushed", ["bridge", "ovs"], "nft flush ruleset"),
  takenFromNode("the masquerade rules are flushed", ["bridge"], "nft flush table inet pipette-pipette0"),
  takenFromNode("the masquerade rules are flushed", ["ovs"], "nft flush table inet pipette-pipette-gw0"),
  takenFromAgent("the socket is removed", ({ home }) => rmSync(home.socket)),
  takenFromAgent("the database is deleted", ({ home, machine }) => machine.run(`rm ${home.dataDir}/leases.db`)),
  takenFromAgent("the database is replaced by its copy", ({ home, machine }) => {
    const path = `${home.dataDir}/leases.db`;
    return machine.runWords(["sh", "-c", `cp ${path} ${path}.new && mv ${path}.new ${path}`]);
  }),
  conflistChanged("the network configuration is deleted", (path) => rmSync(path)),
  // One that is whole and another's is the runtime's to follow: docs/operations.md has what the doctor says then.
  conflistChanged("the network configuration is replaced by half of it", (path) => {
    const text = readFileSync(path, "utf8");
    writeFileSync(join(dirname(path), ".half"), text.slice(0, text.length / 2));
    renameSync(join(dirname(path), ".half"), path);
  }),
];
