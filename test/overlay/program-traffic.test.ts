import { afterAll, beforeAll, expect, test } from "vitest";
import { Category } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import { baseFlows, podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { programBounds } from "../../agent/datapath/ovs/program/connection.ts";
import { type FlowSet, keyFlowSet } from "../../agent/datapath/ovs/program/flow-set.ts";
import { OpenFlowProgram } from "../../agent/datapath/ovs/program/mod.ts";
import { SwitchState } from "../../agent/datapath/ovs/program/switch-state.ts";
import { deleteFlows } from "../../agent/protocols/openflow/mod.ts";
import { describeWith } from "../support/requires.ts";
import { addressOf, contexts, pods } from "./pipeline-node.ts";
import { PodBridge } from "./pipeline-pods.ts";

const parts = new Map<string, FlowSet>([
  ["base", { category: Category.base, flows: baseFlows(contexts.encap) }],
  ["pod/1", { category: Category.pod, flows: podFlows(contexts.encap, pods.pod1) }],
  ["pod/2", { category: Category.pod, flows: podFlows(contexts.encap, pods.pod2) }],
]);

describeWith("packets while the switch's program changes hands", ["linux", "root", "openvswitch"], () => {
  const open = new AsyncDisposableStack();
  let made: PodBridge;
  let last: number | undefined;

  beforeAll(async () => {
    made = open.use(await PodBridge.start());
  });
  afterAll(() => open.disposeAsync());

  const start = () =>
    OpenFlowProgram.start({
      management: `unix:${made.bridge.vswitch.management("br-int")}`,
      rounds: {
        loadRound: async () => last,
        saveRound: async (round) => {
          last = round;
        },
      },
    });

  /** Packets that were lost, of those of a second and a half, while `work` is done. */
  async function lostDuring(work: () => Promise<void>): Promise<number> {
    const { sandbox, paths } = made;
    const pinging = sandbox.pod(paths.pod1, `ping -n -q -i 0.005 -c 300 -W 5 ${addressOf("pod2", 4)}`).catch(String);
    await Bun.sleep(200);
    await work();
    const received = /300 packets transmitted, (\d+) received/.exec(await pinging)?.[1];
    return 300 - Number(received ?? 0);
  }

  test("an agent that starts anew, part by part, loses none, nor does one that was killed before it was done", async () => {
    await using first = await start();
    await first.set(parts);
    await first.finishRound();
    await first[Symbol.asyncDispose]();
    const lost = await lostDuring(async () => {
      for (const isWhole of [false, true]) {
        await using next = await start();
        for (const [key, part] of parts) {
          await next.set(new Map([[key, part]]));
          if (!isWhole) break;
        }
        if (isWhole) await next.finishRound();
      }
    });
    expect(lost).toBe(0);
    expect(last).toBe(3);
  });

  test("a switch that is filled over what it has loses none; one whose flows go first does", async () => {
    using client = await made.bridge.connect();
    const state = new SwitchState(9, programBounds);
    state.keep(new Map([...parts].map(([key, part]) => [key, keyFlowSet(key, part, 9, 1)])));
    await state.fill(client);
    await state.finish(client);
    const lost = await lostDuring(async () => {
      for (let i = 0; i < 20; i++) await state.fill(client);
    });
    expect(lost).toBe(0);
    const torn = await lostDuring(async () => {
      await client.do(deleteFlows());
      await Bun.sleep(300);
      await state.fill(client);
    });
    expect(torn).toBeGreaterThan(0);
  });
});
