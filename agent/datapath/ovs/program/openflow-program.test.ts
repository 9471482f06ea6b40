import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Change, isAddedFlow, SwitchInMemory } from "../../../../test/fakes/openflow/switch-in-memory.ts";
import { type Flow, flow, group, match, type OpenFlowGroup, output } from "../../../protocols/openflow/mod.ts";
import { Category } from "../pipeline/cookie.ts";
import type { ProgramBounds } from "./connection.ts";
import type { FlowSet } from "./flow-set.ts";
import { OpenFlowProgram } from "./openflow-program.ts";

/** OFPET_BAD_ACTION, OFPBAC_BAD_OUT_GROUP. */
const badGroup = [2, 9] as const;

const numbered = (priority: number, port = 1): Flow =>
  flow({ table: 5, priority, match: match().set("in_port", 2).build(), actions: [output(port)] });
const part = (flows: readonly Flow[], groups: readonly OpenFlowGroup[] = []): FlowSet => ({
  category: Category.service,
  flows,
  groups,
});
const one = (key: string, value: FlowSet | undefined) => new Map([[key, value]]);
const ofPriority = (change: Change, priority: number): boolean => change.t === "flow" && change.priority === priority;
/** A switch that has no place for flows of priority 9. */
const withoutNine = (change: Change) => (ofPriority(change, 9) && isAddedFlow(change) ? badGroup : undefined);

let made: SwitchInMemory;
let open: AsyncDisposableStack;
const statuses: boolean[] = [];

beforeEach(async () => {
  open = new AsyncDisposableStack();
  made = open.use(new SwitchInMemory());
  await made.listen();
  statuses.length = 0;
});
afterEach(() => open.disposeAsync());

async function start(
  bounds: Partial<ProgramBounds> = {},
  onUnwatched: (reason: string) => void = () => undefined,
): Promise<OpenFlowProgram> {
  const rounds = { loadRound: async () => undefined, saveRound: async () => undefined };
  return open.use(
    await OpenFlowProgram.start({
      management: made.management,
      rounds,
      onStatus: ({ connected }) => statuses.push(connected),
      onUnwatched,
      bounds: { retryFirstMs: 1, ...bounds },
    }),
  );
}
const priorities = (): number[] => [...made.flows.keys()].map((key) => Number(key.split("/")[1])).sort((a, b) => a - b);
const outcomes = async (calls: readonly Promise<void>[]): Promise<string[]> =>
  (await Promise.allSettled(calls)).map((each) => (each.status === "fulfilled" ? "done" : each.reason.message));

test("a switch that cannot tell what others change is left without, and that is said once", async () => {
  const unwatched: string[] = [];
  made.canWatch = false;
  const program = await start({}, (reason) => unwatched.push(reason));
  await program.set(one("a", part([numbered(1)])));
  made.cut(true);
  await expect.poll(priorities).toEqual([1]);
  await program.finishRound();
  expect(unwatched).toEqual(["Cannot watch the flows: the switch answers OFPBRC_BAD_STAT"]);
});

test("an agent that stops does not call its switch away, and refuses what comes then", async () => {
  const program = await start();
  await program.set(one("a", part([numbered(1)])));
  await program[Symbol.asyncDispose]();
  expect([statuses, program.status.lastError, priorities()]).toEqual([[true], "", [1]]);
  await expect(program.set(one("a", undefined))).rejects.toThrow('Cannot put "a" into the switch: the agent stops');
  await expect(program.finishRound()).rejects.toThrow("the agent stops");
  expect(await program.compare(true)).toEqual([]);
});

test("what the switch has already is not put in again, nor is a bundle without anything in it", async () => {
  const program = await start();
  await program.set(one("a", part([numbered(1)])));
  const before = made.done.length;
  await program.set(one("a", part([numbered(1)])));
  expect(made.done).toHaveLength(before);
});

describe("a connection that is lost", () => {
  test("is told with its reason, until there is another one", async () => {
    const program = await start({ setMs: 1_000 });
    expect(program.status).toMatchObject({ connected: false, lastError: "" });
    await program.set(one("a", part([numbered(1)])));
    await made.close();
    await expect.poll(() => program.status).toMatchObject({ connected: false, lastError: expect.stringMatching(/./) });
    await expect(program.set(one("b", part([numbered(2)])))).rejects.toMatchObject({
      code: 11,
      message: expect.stringContaining(`(${program.status.lastError})`),
    });
    await made.listen();
    await expect.poll(() => statuses).toEqual([true, false, true]);
    expect(priorities()).toEqual([1, 2]);
  });

  test("between a refused bundle and its changes one by one loses none of them", async () => {
    const program = await start();
    await program.set(one("before", part([numbered(1)])));
    made.refuse = withoutNine;
    let times = 0;
    made.before = (change) => {
      // The first of them by itself, after the refusal of all.
      if (ofPriority(change, 2) && ++times === 2) made.cut();
    };
    const ends = outcomes([
      program.set(one("a", part([numbered(2)]))),
      program.set(one("bad", part([numbered(9)]))),
      program.set(one("b", part([numbered(3)]))),
    ]);
    await expect.poll(() => statuses).toEqual([true, false, true]);
    expect(await ends).toEqual(["done", expect.stringContaining("OFPBAC_BAD_OUT_GROUP"), "done"]);
    expect(priorities()).toEqual([1, 2, 3]);
    expect([...program.status.refused.keys()]).toEqual(["bad"]);
  });

  test("in a bundle whose outcome nobody knows has all of it put in again", async () => {
    const program = await start();
    await program.set(one("before", part([numbered(1)])));
    let cuts = 1;
    made.before = (change) => {
      if (ofPriority(change, 2) && cuts-- > 0) made.cut(true);
    };
    expect(
      await outcomes([program.set(one("a", part([numbered(2)]))), program.set(one("b", part([numbered(3)])))]),
    ).toEqual(["done", "done"]);
    expect(priorities()).toEqual([1, 2, 3]);
    expect(statuses).toEqual([true, false, true]);
  });

  test("while a refused pod is taken back has its call fail all the same", async () => {
    const program = await start();
    await program.set(new Map());
    made.refuse = withoutNine;
    let cuts = 1;
    made.before = (change) => {
      if (ofPriority(change, 4) && !isAddedFlow(change) && cuts-- > 0) made.cut();
    };
    const pod: FlowSet = { category: Category.pod, flows: [numbered(4), numbered(9)] };
    expect(await outcomes([program.set(one("pod", pod))])).toEqual([expect.stringContaining("OFPBAC_BAD_OUT_GROUP")]);
    expect([cuts, priorities(), [...program.status.refused.keys()]]).toEqual([0, [], ["pod"]]);
  });

  test("while the switch is filled has it filled anew by the next one", async () => {
    let cuts = 3;
    made.before = () => {
      if (cuts-- > 0) made.cut(true);
    };
    const program = await start();
    await program.set(new Map([...one("a", part([numbered(1)])), ...one("b", part([numbered(2)]))]));
    expect(priorities()).toEqual([1, 2]);
    expect(statuses).toEqual([true]);
  });
});

describe("what the switch refuses", () => {
  test("of a bundle costs that call alone, and is not put in by the next connection either", async () => {
    made.refuse = withoutNine;
    const program = await start();
    await program.set(one("a", part([numbered(1)])));
    const calls = [program.set(one("a", part([numbered(2), numbered(9)]))), program.set(one("b", part([numbered(3)])))];
    expect(await outcomes(calls)).toEqual([expect.stringContaining("OFPBAC_BAD_OUT_GROUP"), "done"]);
    expect(priorities()).toEqual([1, 3]);
    made.refuse = () => undefined;
    made.cut(true);
    await expect.poll(() => statuses).toEqual([true, false, true]);
    expect(priorities()).toEqual([1, 3]);
    expect(program.status.refused.size).toBe(0);
  });

  test("alone, of a pod without a bundle, is taken back whole", async () => {
    made.refuse = withoutNine;
    const program = await start();
    await program.set(new Map());
    const pod: FlowSet = { category: Category.pod, flows: [numbered(4), numbered(9)] };
    expect(await outcomes([program.set(one("pod", pod))])).toEqual([expect.stringContaining("OFPBAC_BAD_OUT_GROUP")]);
    expect(priorities()).toEqual([]);
    made.refuse = () => undefined;
    await program.set(one("pod", pod));
    expect(priorities()).toEqual([4, 9]);
  });

  test("while it is filled is left out and said, until it is set again", async () => {
    await made.close();
    made.refuse = withoutNine;
    const program = await start();
    const ends = outcomes([
      program.set(one("good", part([numbered(1)]))),
      program.set(one("bad", part([numbered(2), numbered(9)]))),
    ]);
    await made.listen();
    expect(await ends).toEqual(["done", expect.stringContaining("OFPBAC_BAD_OUT_GROUP")]);
    expect([priorities(), [...program.status.refused.keys()]]).toEqual([[1], ["bad"]]);
    await program.set(one("bad", part([numbered(2)])));
    expect([priorities(), program.status.refused.size]).toEqual([[1, 2], 0]);
  });

  test("while it is filled is left out with what may not be in force without it", async () => {
    await made.close();
    made.refuse = withoutNine;
    const program = await start();
    const closes: FlowSet = { category: Category.policy, flows: [numbered(9)] };
    const ends = outcomes([
      program.set(one("open", { ...part([numbered(1)]), needs: "closes" })),
      program.set(one("closes", closes)),
      program.set(one("other", { ...part([numbered(2)]), needs: "none" })),
    ]);
    await made.listen();
    expect((await ends)[2]).toBe("done");
    expect(priorities()).toEqual([2]);
    expect(program.status.refused.get("open")).toBe('it needs "closes", which the switch refuses');
  });
});

test("a pod comes from the last table to the first, and goes from the first to the last", async () => {
  const program = await start();
  await program.set(new Map());
  const at = (table: number): Flow => flow({ table, priority: table, actions: [output(1)] });
  const tables = (): number[] =>
    made.done.splice(0).flatMap((changes) => changes.map((each) => (each.t === "flow" ? each.table : -1)));
  tables();
  await program.set(one("pod", { category: Category.pod, flows: [at(3), at(7), at(5)] }));
  expect(tables()).toEqual([7, 5, 3]);
  await program.set(one("pod", undefined));
  expect(tables()).toEqual([3, 5, 7]);
});

test("a group comes before the flows that name it, and goes after them, in one bundle", async () => {
  const program = await start();
  await program.set(new Map());
  made.done.length = 0;
  const selecting = group(7, "select", [{ actions: [output(1)] }]);
  await program.set(one("service", part([numbered(1)], [selecting])));
  await program.set(one("service", undefined));
  expect(made.done.map((changes) => changes.map(({ t }) => t))).toEqual([
    ["group", "flow"],
    ["flow", "group"],
  ]);
  expect([made.flows.size, made.groups.size]).toEqual([0, 0]);
});
