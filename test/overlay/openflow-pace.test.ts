import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  addFlow,
  bits,
  deleteFlows,
  type Flow,
  flow,
  flowText,
  match,
  type OpenFlowClient,
  resubmit,
  setField,
} from "../../agent/protocols/openflow/mod.ts";
import { ipOf } from "../../shared/net/ip.ts";
import { summarize } from "../bench/stats.ts";
import { describeWith } from "../support/requires.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

/** Rounds that are timed; with more than one, the times are printed. */
const rounds = Number(process.env["PIPETTE_OPENFLOW_PACE"] ?? 1);
const sizes = rounds > 1 ? [1000, 10_000] : [200];

/** The way to one pod of this node or another's: what a node has most of. */
const podFlow = (i: number): Flow =>
  flow({
    table: 70,
    priority: 200,
    cookie: 0x0001_0100_0000_0000n | BigInt(i),
    match: match()
      .protocol("ip")
      .bits(bits("reg0", 9), 1)
      .destination(ipOf(4, 0x0a0a_0000n + BigInt(i)))
      .build(),
    actions: [setField("eth_src", "0e:00:0a:0a:01:01"), setField("eth_dst", "0a:00:0a:0a:01:02"), resubmit(72)],
  });

describeWith("the pace of OpenFlow", ["linux", "root", "openvswitch"], () => {
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

  test.each(sizes)("%i flows in a bundle, directly and by ovs-ofctl in turn", { timeout: 300_000 }, async (count) => {
    using client: OpenFlowClient = await bridge.connect();
    const file = join(bridge.vswitch.directory, "flows.txt");
    const target = `unix:${bridge.vswitch.management("br-int")}`;
    const options = ["-O", "OpenFlow15"];
    const numbers = Array.from({ length: count }, (_, i) => i);
    writeFileSync(file, numbers.map((i) => `${flowText(podFlow(i))}\n`).join(""));
    const times = {
      direct: [] as number[],
      alone: [] as number[],
      ofctl: [] as number[],
      list: [] as number[],
      dump: [] as number[],
    };
    for (let round = 0; round < rounds; round++) {
      // With a connection of its own, and the flows made anew: all that ovs-ofctl does too.
      const direct = async (): Promise<void> => {
        using own = await bridge.connect();
        await own.bundle(numbers.map((i) => addFlow(podFlow(i))));
      };
      times.direct.push(await timed(direct));
      times.list.push(await timed(() => client.flows()));
      await client.do(deleteFlows());
      const flows = numbers.map((i) => addFlow(podFlow(i)));
      times.alone.push(await timed(() => client.bundle(flows)));
      await client.do(deleteFlows());
      times.ofctl.push(
        await timed(() => bridge.vswitch.run("ovs-ofctl", ...options, "--bundle", "add-flows", target, file)),
      );
      times.dump.push(await timed(() => bridge.vswitch.run("ovs-ofctl", ...options, "dump-flows", target)));
      expect(await client.flows()).toHaveLength(count);
      await client.do(deleteFlows());
    }
    if (rounds === 1) return;
    const shown = Object.entries(times).map(
      ([what, ms]) => `${what} ${Math.min(...ms).toFixed(1)}/${summarize(ms).median.toFixed(1)}`,
    );
    const ratio = summarize(times.direct).median / summarize(times.ofctl).median;
    console.log(`${count} flows (least/median ms): ${shown.join(", ")}; direct against ovs-ofctl ${ratio.toFixed(2)}`);
  });
});
