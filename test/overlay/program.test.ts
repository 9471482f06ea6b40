import { afterEach, beforeEach, expect, test } from "vitest";
import { Category, readCookie } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import type { FlowSet } from "../../agent/datapath/ovs/program/flow-set.ts";
import { OpenFlowProgram, type ProgramOptions } from "../../agent/datapath/ovs/program/mod.ts";
import {
  addFlow,
  type Flow,
  flow,
  flowText,
  group,
  groupText,
  match,
  type OpenFlowClient,
  type OpenFlowGroup,
  output,
  resubmit,
  toGroup,
} from "../../agent/protocols/openflow/mod.ts";
import { describeWith } from "../support/requires.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

const part = (flows: readonly Flow[], groups: readonly OpenFlowGroup[] = []): FlowSet => ({
  category: Category.service,
  flows,
  groups,
});
/** One flow of table 5, told apart by its priority. */
const numbered = (priority: number, port = 1): Flow =>
  flow({ table: 5, priority, match: match().set("in_port", 2).build(), actions: [output(port)] });
/** The switch takes no flow whose group is not there. */
const refused = flow({ table: 5, priority: 9, actions: [toGroup(99)] });
const selecting = (port: number): OpenFlowGroup => group(7, "select", [{ actions: [output(port)] }]);
const one = (key: string, value: FlowSet | undefined) => new Map([[key, value]]);

/** Where the round is kept, beyond the life of one program. */
class Rounds {
  last: number | undefined;
  loadRound = async (): Promise<number | undefined> => this.last;
  saveRound = async (round: number): Promise<void> => {
    this.last = round;
  };
}

describeWith("the program of a real switch", ["linux", "root", "openvswitch"], () => {
  let bridge: OpenFlowBridge;
  let watcher: OpenFlowClient;
  let rounds: Rounds;
  let open: AsyncDisposableStack;
  const connected: boolean[] = [];

  beforeEach(async () => {
    open = new AsyncDisposableStack();
    bridge = open.use(await OpenFlowBridge.start());
    watcher = open.use(await bridge.connect());
    rounds = new Rounds();
    connected.length = 0;
  });
  afterEach(() => open.disposeAsync());

  async function start(options: Partial<ProgramOptions> = {}): Promise<OpenFlowProgram> {
    return open.use(
      await OpenFlowProgram.start({
        management: `unix:${bridge.vswitch.management("br-int")}`,
        rounds,
        onStatus: (status) => connected.push(status.connected),
        ...options,
      }),
    );
  }
  const priorities = async (client = watcher): Promise<number[]> =>
    (await client.flows()).map((found) => found.flow.priority).sort((a, b) => a - b);
  const groups = async (): Promise<string[]> => (await watcher.groups()).map(groupText);
  async function eventually<T>(look: () => Promise<T> | T, wanted: T): Promise<void> {
    const until = performance.now() + 20_000;
    for (;;) {
      const found = await Promise.resolve(look()).catch(() => undefined);
      if (Bun.deepEquals(found, wanted)) return;
      if (performance.now() > until) expect(found).toEqual(wanted);
      await Bun.sleep(10);
    }
  }

  test("puts parts in with their cookies, changes what is different, and leaves the counters of the rest", async () => {
    const program = await start();
    await program.set(one("a", part([numbered(1), numbered(2)])));
    const [first] = await watcher.flows();
    expect(readCookie(first?.flow.cookie ?? 0n)).toMatchObject({ round: 1, category: Category.service });
    // A packet for priority 2, from its own port.
    await bridge.ofctl(6, "packet-out", `in_port=2,packet=${"0".repeat(24)}88b5${"0".repeat(92)},actions=resubmit(,5)`);
    const packets = async () =>
      new Map((await watcher.flows()).map((f) => [f.flow.priority, Number(f.counters.packets)]));
    await eventually(async () => (await packets()).get(2), 1);
    await program.set(one("a", part([numbered(1, 3), numbered(2), numbered(3)])));
    expect((await watcher.flows()).map((f) => flowText({ ...f.flow, cookie: 0n })).sort()).toEqual([
      "table=5, priority=1,in_port=2 actions=output:3",
      "table=5, priority=2,in_port=2 actions=output:1",
      "table=5, priority=3,in_port=2 actions=output:1",
    ]);
    expect((await packets()).get(2)).toBe(1);
    await program.set(one("a", undefined));
    expect(await priorities()).toEqual([]);
  });

  test("takes a group before the flows that name it, changes it, and takes it out after them", async () => {
    const program = await start();
    const named = flow({ table: 5, priority: 1, actions: [toGroup(7)] });
    // From here on it is connected, and takes changes in place of the whole.
    await program.set(new Map());
    await program.set(one("service", part([named], [selecting(1)])));
    await program.set(one("service", part([named], [selecting(2)])));
    expect(await groups()).toEqual(["group_id=7,type=select,bucket=bucket_id:0,actions=output:2"]);
    await program.set(one("service", undefined));
    expect(await groups()).toEqual([]);
    expect(await priorities()).toEqual([]);
  });

  test("a change that the switch refuses leaves all as it was, and costs others that wait with it nothing", async () => {
    const program = await start();
    await program.set(one("a", part([numbered(1)])));
    const outcomes = await Promise.allSettled([
      program.set(one("a", part([numbered(2), refused]))),
      program.set(one("b", part([numbered(3)]))),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect(outcomes[0]).toMatchObject({
      reason: { code: 102, message: expect.stringContaining("OFPBAC_BAD_OUT_GROUP") },
    });
    expect(await priorities()).toEqual([1, 3]);
    // What was refused is forgotten, and does not come back with the next connection.
    await bridge.vswitch.stop("ovs-vswitchd", "SIGKILL");
    await bridge.vswitch.startSwitch();
    await eventually(() => connected.at(-1), true);
    watcher = open.use(await bridge.connect());
    expect(await priorities()).toEqual([1, 3]);
  });

  test("no part gets the place of another's flow", async () => {
    const program = await start();
    await program.set(one("a", part([numbered(1)])));
    await expect(program.set(one("b", part([numbered(1, 9), numbered(2)])))).rejects.toMatchObject({
      code: 102,
      message: expect.stringContaining('"a" has the place'),
    });
    expect(await priorities()).toEqual([1]);
    // Together with its end, it may.
    await program.set(
      new Map([
        ["b", part([numbered(1, 9)])],
        ["a", undefined],
      ]),
    );
    expect(await bridge.dumpFlows()).toEqual([expect.stringContaining("priority=1,in_port=2 actions=output:9")]);
  });

  test("a killed switch has everything again, and what was set meanwhile", async () => {
    const program = await start();
    await program.set(
      new Map([
        ["a", part([numbered(1), flow({ table: 5, priority: 4, actions: [toGroup(7)] })], [selecting(1)])],
        ["b", part([numbered(2)])],
      ]),
    );
    await bridge.vswitch.stop("ovs-vswitchd", "SIGKILL");
    const meanwhile = [program.set(one("c", part([numbered(3)]))), program.set(one("b", undefined))];
    await eventually(() => program.status.connected, false);
    await bridge.vswitch.startSwitch();
    await Promise.all(meanwhile);
    watcher = open.use(await bridge.connect());
    expect(await priorities()).toEqual([1, 3, 4]);
    expect(await groups()).toHaveLength(1);
    expect(connected).toEqual([true, false, true]);
  });

  test("while the switch is away a change is kept, though its call ends with 11; more than the bound are not waited for", async () => {
    const program = await start({ bounds: { setMs: 100, waitingCalls: 2 } });
    await program.set(one("a", part([numbered(1)])));
    await bridge.vswitch.stop("ovs-vswitchd");
    await eventually(() => program.status.connected, false);
    const calls = [2, 3, 4].map((n) => program.set(one(`p${n}`, part([numbered(n)]))));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes).toMatchObject(outcomes.map(() => ({ status: "rejected", reason: { code: 11 } })));
    expect(outcomes[2]).toMatchObject({ reason: { message: expect.stringContaining("2 changes wait") } });
    await bridge.vswitch.startSwitch();
    await eventually(() => connected.at(-1), true);
    watcher = open.use(await bridge.connect());
    expect(await priorities()).toEqual([1, 2, 3, 4]);
  });

  test("a part that the switch refuses when it is filled is left out and told of, the others are in", async () => {
    await bridge.vswitch.stop("ovs-vswitchd");
    const program = await start();
    const outcomes = Promise.allSettled([
      program.set(one("good", part([numbered(1)]))),
      program.set(one("bad", part([numbered(2), refused]))),
    ]);
    await bridge.vswitch.startSwitch();
    expect((await outcomes).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    watcher = open.use(await bridge.connect());
    expect(await priorities()).toEqual([1]);
    expect([...program.status.refused.keys()]).toEqual(["bad"]);
    await program.set(one("bad", part([numbered(2)])));
    expect(program.status.refused.size).toBe(0);
    expect(await priorities()).toEqual([1, 2]);
  });

  test("an agent that starts anew leaves the earlier round's flows until its own are in, also after a start that came to nothing", async () => {
    const first = await start();
    await first.set(
      new Map([
        ["a", part([numbered(1)])],
        ["gone", part([numbered(8), flow({ table: 5, priority: 4, actions: [toGroup(7)] })], [selecting(1)])],
      ]),
    );
    await first.finishRound();
    await first[Symbol.asyncDispose]();
    const killed = await start();
    await killed.set(one("a", part([numbered(1)])));
    await killed[Symbol.asyncDispose]();
    await watcher.do(addFlow(numbered(77)));
    expect(await priorities()).toEqual([1, 4, 8, 77]);

    const second = await start();
    expect(second.round).toBe(3);
    await second.set(one("b", part([numbered(2)])));
    // Not yet the turn of "a": the flow of the start that was killed is still there.
    expect(await priorities()).toEqual([1, 2, 4, 8, 77]);
    await second.set(one("a", part([numbered(1)])));
    await second.finishRound();
    expect(await priorities()).toEqual([1, 2]);
    expect(await groups()).toEqual([]);
    expect((await watcher.flows()).map((found) => readCookie(found.flow.cookie).round)).toEqual([3, 3]);
  });

  test("the number of a round begins again after the last", async () => {
    rounds.last = 0xffff;
    const program = await start();
    expect(program.round).toBe(1);
    // Each differs from this round in one bit.
    const others = Array.from({ length: 16 }, (_, i) => BigInt(1 ^ (1 << i)) << 48n);
    for (const [i, cookie] of others.entries()) await watcher.do(addFlow({ ...numbered(10 + i), cookie }));
    expect(await priorities()).toHaveLength(16);
    await program.set(one("a", part([numbered(1)])));
    await program.finishRound();
    expect(await priorities()).toEqual([1]);
  });

  test("a connection that breaks while the switch goes on brings no flow twice, none back, and takes none for a moment", async () => {
    const program = await start({ bounds: { idleMs: 50, answerMs: 300, bundleMs: 300 } });
    await program.set(
      new Map([
        ["a", part([numbered(1)])],
        ["b", part([numbered(2)], [selecting(1)])],
      ]),
    );
    await bridge.vswitch.stop("ovs-vswitchd", "SIGSTOP");
    // One is under way when the connection ends, one waits for it, and one comes later.
    const calls = [program.set(one("c", part([numbered(3)])))];
    await Bun.sleep(1);
    calls.push(program.set(one("d", part([numbered(4)]))));
    await eventually(() => program.status.connected, false);
    calls.push(program.set(one("b", undefined)));
    await bridge.vswitch.stop("ovs-vswitchd", "SIGCONT");
    await Promise.all(calls);
    expect(await priorities()).toEqual([1, 3, 4]);
    expect(await groups()).toEqual([]);
  });

  test("what is more than one bundle takes goes in by several, and only the part that is refused stays out", async () => {
    await bridge.vswitch.stop("ovs-vswitchd");
    const program = await start({ bounds: { bundleMessages: 2 } });
    const all = [1, 2, 3, 4, 5].map((n) => [`p${n}`, part([numbered(n), numbered(10 + n)])] as const);
    const calls = [program.set(new Map(all)), program.set(one("bad", part([refused])))];
    const outcomes = Promise.allSettled(calls);
    await bridge.vswitch.startSwitch();
    expect((await outcomes).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    watcher = open.use(await bridge.connect());
    expect(await priorities()).toEqual([1, 2, 3, 4, 5, 11, 12, 13, 14, 15]);
    await Promise.all(all.map(([key]) => program.set(one(key, undefined))));
    expect(await priorities()).toEqual([]);
  });

  test("a switch that hangs is asked, given up and reached again; no more calls wait for it than may", async () => {
    const program = await start({ bounds: { idleMs: 50, answerMs: 200, waitingCalls: 2 } });
    await program.set(one("a", part([numbered(1)])));
    await bridge.vswitch.stop("ovs-vswitchd", "SIGSTOP");
    const calls = [2, 3].map((n) => program.set(one(`p${n}`, part([numbered(n)]))));
    await expect(program.set(one("p4", part([numbered(4)])))).rejects.toMatchObject({
      code: 11,
      message: expect.stringContaining("2 changes wait"),
    });
    // Long before the time of a bundle is up.
    await eventually(() => program.status.connected, false);
    expect(program.status.lastError).toContain("no answer came in time");
    await bridge.vswitch.stop("ovs-vswitchd", "SIGCONT");
    await Promise.all(calls);
    expect(await priorities()).toEqual([1, 2, 3]);
  });

  test("a round that cannot be finished in time is finished once the switch is back, for who asks again too", async () => {
    await watcher.do(addFlow({ ...numbered(5), cookie: 0x0007_0000_0000_0000n }));
    const program = await start({ bounds: { finishMs: 100, idleMs: 50, answerMs: 300 } });
    await program.set(one("a", part([numbered(1)])));
    await bridge.vswitch.stop("ovs-vswitchd", "SIGSTOP");
    await expect(program.finishRound()).rejects.toMatchObject({ code: 11 });
    await bridge.vswitch.stop("ovs-vswitchd", "SIGCONT");
    await eventually(() => program.finishRound().then(() => true), true);
    expect(await priorities()).toEqual([1]);
  });

  test("what waits when the agent stops fails", async () => {
    await bridge.vswitch.stop("ovs-vswitchd");
    const program = await start();
    const call = program.set(one("a", part([flow({ table: 5, actions: [resubmit(6)] })])));
    await Promise.all([program[Symbol.asyncDispose](), expect(call).rejects.toMatchObject({ code: 11 })]);
    await expect(program.set(one("a", undefined))).rejects.toMatchObject({ code: 11 });
  });
});
