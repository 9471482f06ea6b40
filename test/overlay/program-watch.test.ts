import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Category, cookieOf, learnedBit } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import { newConnectionMeter } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { driftLoop } from "../../agent/datapath/ovs/program/drift.ts";
import type { FlowSet } from "../../agent/datapath/ovs/program/flow-set.ts";
import { OpenFlowProgram } from "../../agent/datapath/ovs/program/mod.ts";
import {
  addFlow,
  addMeter,
  deleteFlow,
  deleteFlows,
  type Flow,
  flow,
  group,
  modifyMeter,
  type OpenFlowClient,
  type OpenFlowRequest,
  output,
  throughMeter,
  toGroup,
} from "../../agent/protocols/openflow/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { eventually } from "../support/agent-process.ts";
import { addGroup, deleteMeter, modifyFlows, modifyGroup } from "../support/openflow-requests.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

const numbered = (priority: number, more: Partial<Flow> = {}): Flow =>
  flow({ table: 5, priority, actions: [output(1)], ...more });
const bucketTo = (port: number) => group(7, "select", [{ actions: [output(port)] }]);

const part: FlowSet = { category: Category.pod, flows: [numbered(1), numbered(2, { actions: [throughMeter(2)] })] };
const service: FlowSet = {
  category: Category.service,
  flows: [numbered(3, { actions: [toGroup(7)] })],
  groups: [bucketTo(1)],
};

describeWith("a switch that tells what others change in it", ["linux", "root", "openvswitch"], () => {
  let bridge: OpenFlowBridge;
  let other: OpenFlowClient;
  let open: AsyncDisposableStack;
  /** How often somebody else was said to be at work. */
  let hints: number;
  let unwatched: string[];

  beforeEach(async () => {
    open = new AsyncDisposableStack();
    bridge = open.use(await OpenFlowBridge.start());
    other = open.use(await bridge.connect());
    hints = 0;
    unwatched = [];
  });
  afterEach(() => open.disposeAsync());

  async function start(onForeignChange = (): void => void hints++): Promise<OpenFlowProgram> {
    const rounds = { loadRound: async () => undefined, saveRound: async () => undefined };
    const management = `unix:${bridge.vswitch.management("br-int")}`;
    const onUnwatched = (reason: string): void => void unwatched.push(reason);
    const program = open.use(await OpenFlowProgram.start({ management, rounds, onForeignChange, onUnwatched }));
    await program.set(new Map([["pod", part]]));
    await program.set(new Map([["service", service]]));
    await program.finishRound();
    return program;
  }

  test("each way of others to change a flow, a group or a meter is told", async () => {
    await start();
    const changes: readonly OpenFlowRequest[] = [
      addFlow(numbered(9)),
      modifyFlows(numbered(9, { actions: [output(2)] })),
      deleteFlow(numbered(9)),
      addFlow(numbered(1, { actions: [output(2)] })),
      deleteFlows(),
      addGroup(group(9, "select", [{ actions: [output(1)] }])),
      modifyGroup(bucketTo(2)),
      modifyMeter({ ...newConnectionMeter(2), rate: 1 }),
      deleteMeter(2),
      addMeter(newConnectionMeter(2)),
    ];
    for (const change of changes) {
      const before = hints;
      await other.do(change);
      await eventually(async () => hints > before, `to hear of: ${change.action}`);
    }
    expect(unwatched).toEqual([]);
  });

  test("what the program changes itself, and what packets have learned, is nobody's", async () => {
    const program = await start();
    await program.set(new Map([["pod", { ...part, flows: [numbered(1, { actions: [output(2)] }), numbered(4)] }]]));
    await program.set(new Map([["service", undefined]]));
    await program.look(true);
    const learned = numbered(33, { cookie: cookieOf(0, Category.service, 7) | learnedBit });
    await other.do(addFlow(learned));
    await other.do(deleteFlow(learned));
    await program.look(false);
    expect(hints).toBe(0);
    await other.do(deleteFlows());
    await eventually(async () => hints > 0, "to hear of the deleted flows");
    const before = hints;
    expect(await program.look(true)).toHaveLength(1);
    await program.look(false);
    expect(hints).toBe(before);
  });

  test("it is told by the next connection too", async () => {
    const program = await start();
    await bridge.vswitch.stop("ovs-vswitchd", "SIGKILL");
    await bridge.vswitch.startSwitch();
    await eventually(async () => program.status.connected, "the switch to have everything again");
    expect(hints).toBe(0);
    await bridge.ofctl(6, "del-flows");
    await eventually(async () => hints > 0, "to hear of the deleted flows");
  });

  test("a storm of others' changes, which the switch tells in part, costs a look or two", async () => {
    let looks = 0;
    const watch: { trigger(): void }[] = [];
    const program = await start(() => watch[0]?.trigger());
    const look = (): Promise<readonly string[]> => {
      looks++;
      return program.look(true);
    };
    watch.push(open.use(driftLoop({ look, logger: createLogger("error", () => undefined) })));
    const before = await bridge.dumpFlows();
    const file = join(open.use(scratchDir()).path, "flows");
    const lines = Array.from({ length: 24_000 }, (_, i) => `table=9,reg0=${i + 1},actions=drop`);
    writeFileSync(file, lines.join("\n"));
    const target = `unix:${bridge.vswitch.management("br-int")}`;
    // Nobody reads meanwhile: once what it has told fills the socket, and 128 KB more, the switch stops telling.
    expect(spawnSync("ovs-ofctl", ["-O", "OpenFlow15", "add-flows", target, file]).status).toBe(0);
    await eventually(async () => Bun.deepEquals(await bridge.dumpFlows(), before), "the foreign flows to be gone");
    expect(looks).toBeLessThan(4);
    expect(await bridge.vswitch.switchControl("coverage/show")).toMatch(/ofmonitor_pause.*total: [1-9]/);
    expect(await program.look(false)).toEqual([]);
  });
});
