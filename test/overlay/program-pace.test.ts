import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Category } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import { baseFlows, peerFlows, podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { programBounds } from "../../agent/datapath/ovs/program/connection.ts";
import { type FlowSet, keyFlowSet } from "../../agent/datapath/ovs/program/flow-set.ts";
import { OpenFlowProgram } from "../../agent/datapath/ovs/program/mod.ts";
import { SwitchState } from "../../agent/datapath/ovs/program/switch-state.ts";
import { flowText } from "../../agent/protocols/openflow/mod.ts";
import { ipOf } from "../../shared/net/ip.ts";
import { summarize } from "../bench/stats.ts";
import { describeWith } from "../support/requires.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";
import { contexts, peers } from "./pipeline-node.ts";

/** Rounds that are timed; with more than one, the times are printed. */
const rounds = Number(process.env["PIPETTE_OPENFLOW_PACE"] ?? 1);
/** The first is a full node; the second has about a thousand flows. */
const sizes =
  rounds > 1
    ? [
        { pods: 250, peers: 512 },
        { pods: 40, peers: 80 },
      ]
    : [{ pods: 10, peers: 20 }];

/** A node with two families, its pods and its peers: all that is put in anew when the switch has restarted. */
function partsOf(size: (typeof sizes)[number]): Map<string, FlowSet> {
  const context = contexts.multitenant;
  const all = new Map<string, FlowSet>([["base", { category: Category.base, flows: baseFlows(context) }]]);
  for (let i = 0; i < size.pods; i++) {
    const mac = `0a:00:00:00:01:${i.toString(16).padStart(2, "0")}`;
    const ips = [ipOf(4, 0x0a0a_0102n + BigInt(i)), ipOf(6, (0xfd00_0010_0001n << 80n) + BigInt(i + 2))];
    all.set(`pod/${i}`, {
      category: Category.pod,
      flows: podFlows(context, { ofport: 100 + i, mac, ips, vnid: 10 + i }),
    });
  }
  for (let i = 0; i < size.peers; i++) {
    const subnets = [{ ip: ipOf(4, 0x0a80_0000n + (BigInt(i) << 9n)), prefix: 23 }];
    const addresses = [ipOf(4, 0xac20_0002n + BigInt(i))];
    all.set(`node/${i}`, { category: Category.node, flows: peerFlows(context, { ...peers[0]!, subnets, addresses }) });
  }
  return all;
}

describeWith("the pace of the switch's program", ["linux", "root", "openvswitch"], () => {
  let bridge: OpenFlowBridge;
  beforeAll(async () => {
    bridge = await OpenFlowBridge.start();
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };

  /** Times what follows a restart of the switch alone: the parts are there, and in place. */
  async function replay(parts: ReadonlyMap<string, FlowSet>): Promise<number> {
    const state = new SwitchState(1, programBounds);
    state.keep(new Map([...parts].map(([key, part]) => [key, keyFlowSet(key, part, 1, 1)])));
    await bridge.ofctl(6, "del-flows");
    return timed(async () => {
      using client = await bridge.connect();
      await state.fill(client);
    });
  }

  test.each(sizes)(
    "$pods pods and $peers peers, by the program and by ovs-ofctl in turn",
    { timeout: 300_000 },
    async (size) => {
      const parts = () => partsOf(size);
      const flows = [...parts().values()].flatMap((part) => part.flows);
      const file = join(bridge.vswitch.directory, "flows.txt");
      writeFileSync(file, flows.map((flow) => `${flowText(flow)}\n`).join(""));
      const target = `unix:${bridge.vswitch.management("br-int")}`;
      const times = {
        whole: [] as number[],
        replay: [] as number[],
        again: [] as number[],
        one: [] as number[],
        ofctl: [] as number[],
      };
      const rounded = { loadRound: async () => undefined, saveRound: async () => undefined };
      for (let round = 0; round < rounds; round++) {
        await bridge.ofctl(6, "del-flows");
        await using program = await OpenFlowProgram.start({ management: target, rounds: rounded });
        await program.set(new Map());
        times.whole.push(await timed(() => program.set(parts())));
        expect(await bridge.dumpFlows()).toHaveLength(flows.length);
        times.again.push(await timed(() => program.set(parts())));
        const [[key, one] = ["", undefined]] = [...parts()].slice(1, 2);
        await program.set(new Map([[key, undefined]]));
        times.one.push(await timed(() => program.set(new Map([[key, one]]))));
        await program[Symbol.asyncDispose]();
        times.replay.push(await replay(parts()));
        expect(await bridge.dumpFlows()).toHaveLength(flows.length);
        await bridge.ofctl(6, "del-flows");
        const options = ["-O", "OpenFlow15", "--bundle", "add-flows", target, file];
        times.ofctl.push(await timed(() => bridge.vswitch.run("ovs-ofctl", ...options)));
        expect(await bridge.dumpFlows()).toHaveLength(flows.length);
      }
      if (rounds === 1) return;
      const shown = Object.entries(times).map(
        ([what, ms]) => `${what} ${Math.min(...ms).toFixed(1)}/${summarize(ms).median.toFixed(1)}`,
      );
      const against = (what: "whole" | "replay"): string =>
        `${what} ${(summarize(times[what]).median / summarize(times.ofctl).median).toFixed(2)}`;
      const ratios = `${against("whole")}, ${against("replay")}`;
      console.log(`${flows.length} flows (least/median ms): ${shown.join(", ")}; against ovs-ofctl: ${ratios}`);
    },
  );
});
