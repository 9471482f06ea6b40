import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { OpenFlowProgram } from "../../../agent/datapath/ovs/program/mod.ts";
import { addFlow, deleteFlows, flowText, OpenFlowClient } from "../../../agent/protocols/openflow/mod.ts";
import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { overlayBudgets } from "../budgets.ts";
import { compare, type Row } from "../row.ts";
import type { OverlaySetting } from "./measure-overlay.ts";
import { nodeParts } from "./node-flows.ts";

const bridge = "bench-flows";
const protocol = ["-O", "OpenFlow15"] as const;

/** Flows into an empty table, by our client and program, and by ovs-ofctl with the same flows in a file. */
export async function measureSwitch(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row[]> {
  const columns = ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow10,OpenFlow13,OpenFlow15"];
  await vswitch.vsctl("add-br", bridge, "--", "set", "Bridge", bridge, ...columns);
  const rows = [await measureFlows(vswitch, setting), await measureReplay(vswitch, setting)];
  await vswitch.vsctl("del-br", bridge);
  return rows;
}

async function measureFlows(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row> {
  setting.progress(`${setting.flows} flows in one bundle`);
  // Of what a node has most: the ways to its peers.
  const flows = [...nodeParts({ pods: 0, peers: setting.flows }).values()]
    .flatMap((part) => part.flows)
    .slice(-setting.flows);
  const file = join(setting.scratch, "flows.txt");
  writeFileSync(file, flows.map((each) => `${flowText(each)}\n`).join(""));
  return compare({
    measure: `${setting.flows} flows in a bundle`,
    ...overlayBudgets.flows,
    rounds: setting.rounds,
    ours: async () => {
      await empty(vswitch);
      return await timed(async () => {
        // With a connection of its own, as ovs-ofctl has one.
        using client = await connect(vswitch);
        await client.bundle(flows.map(addFlow));
      });
    },
    peer: async () => {
      await empty(vswitch);
      return timed(() => vswitch.run("ovs-ofctl", ...protocol, "--bundle", "add-flows", target(vswitch), file));
    },
    peerName: "ovs-ofctl --bundle add-flows",
  });
}

async function measureReplay(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row> {
  const { pods, peers } = setting.node;
  setting.progress(`a whole node with ${pods} pods and ${peers} peers`);
  const parts = nodeParts(setting.node);
  const file = join(setting.scratch, "node.txt");
  const flows = [...parts.values()].flatMap((part) => part.flows);
  writeFileSync(file, flows.map((each) => `${flowText(each)}\n`).join(""));
  return compare({
    measure: `replay of ${flows.length} flows: ${pods} pods, ${peers} peers`,
    ...overlayBudgets.replay,
    rounds: setting.rounds,
    ours: async (round) => {
      await empty(vswitch);
      const rounds = { loadRound: async () => round + 1, saveRound: async () => undefined };
      await using program = await OpenFlowProgram.start({ management: target(vswitch), rounds });
      return await timed(async () => {
        await program.set(parts);
        await program.finishRound();
      });
    },
    peer: async () => {
      await empty(vswitch);
      return timed(() => vswitch.run("ovs-ofctl", ...protocol, "--bundle", "replace-flows", target(vswitch), file));
    },
    peerName: "ovs-ofctl --bundle replace-flows",
  });
}

const target = (vswitch: OpenVswitch): string => `unix:${vswitch.management(bridge)}`;

const connect = (vswitch: OpenVswitch): Promise<OpenFlowClient> =>
  OpenFlowClient.connect({ t: "path", path: vswitch.management(bridge) });

async function empty(vswitch: OpenVswitch): Promise<void> {
  using client = await connect(vswitch);
  await client.do(deleteFlows());
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
