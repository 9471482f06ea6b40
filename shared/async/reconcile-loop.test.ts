import { expect, test } from "vitest";
import { createLogger } from "../log.ts";
import { ReconcileLoop } from "./reconcile-loop.ts";

const quiet = createLogger("error", () => undefined);
const damped = { what: "it", logger: quiet, isDamped: true };

test("triggers that come together are one run, and one that comes during a run is another", async () => {
  const gate = Promise.withResolvers<void>();
  let [runs, atOnce, most] = [0, 0, 0];
  await using loop = new ReconcileLoop({
    what: "the switch",
    reconcile: async () => {
      runs++;
      most = Math.max(most, ++atOnce);
      if (runs === 1) await gate.promise;
      atOnce--;
    },
    logger: quiet,
  });
  loop.trigger();
  loop.trigger();
  const first = loop.run();
  while (runs === 0) await Bun.sleep(1);
  const second = loop.run();
  gate.resolve();
  await Promise.all([first, second]);
  expect([runs, most]).toEqual([2, 1]);
});

test("who waits for a run hears of its failure, and it is done again without a word", async () => {
  let runs = 0;
  await using loop = new ReconcileLoop({
    what: "the switch",
    reconcile: async () => {
      if (++runs === 1) throw new Error("away");
    },
    logger: quiet,
  });
  await expect(loop.run()).rejects.toThrow("away");
  while (runs < 2) await Bun.sleep(10);
});

test("what is refused fails nobody who waits, is said once, and is tried again until it is taken", async () => {
  const lines: string[] = [];
  let runs = 0;
  const logger = createLogger("warn", (line) => void lines.push(line));
  await using loop = new ReconcileLoop({
    what: "the switch",
    reconcile: async () => (++runs < 3 ? "refused" : undefined),
    logger,
  });
  await loop.run();
  while (runs < 3) await Bun.sleep(10);
  expect(lines.map((line) => JSON.parse(line).error)).toEqual(["refused"]);
});

test("with pauses of its own a trigger ends the one after a failure", async () => {
  let runs = 0;
  await using loop = new ReconcileLoop({
    what: "the switch",
    reconcile: async () => (++runs < 3 ? "refused" : undefined),
    logger: quiet,
    retry: { firstMs: 1, longestMs: 2 ** 30 },
  });
  await loop.run();
  while (runs < 2) await Bun.sleep(1);
  await using patient = new ReconcileLoop({
    what: "the switch",
    reconcile: async () => (++runs < 6 ? "refused" : undefined),
    logger: quiet,
    retry: { firstMs: 2 ** 30, longestMs: 2 ** 30 },
  });
  while (runs < 3) await Bun.sleep(1);
  for (const wanted of [4, 5, 6]) {
    patient.trigger();
    while (runs < wanted) await Bun.sleep(1);
  }
});

test("one that has ended begins nothing, and lets nobody wait", async () => {
  let runs = 0;
  const loop = new ReconcileLoop({ what: "the switch", reconcile: async () => void runs++, logger: quiet });
  const waiting = expect(loop.run()).rejects.toThrow("the agent stops");
  await loop[Symbol.asyncDispose]();
  await waiting;
  loop.trigger();
  expect(runs).toBe(0);
});

test("damped: a thousand triggers are one run at once, and one more after a rest", async () => {
  const at: number[] = [];
  await using loop = new ReconcileLoop({ ...damped, reconcile: async () => void at.push(performance.now()) });
  loop.trigger();
  while (at.length === 0) await Bun.sleep(1);
  for (let i = 0; i < 1_000; i++) loop.trigger();
  while (at.length === 1) await Bun.sleep(10);
  await Bun.sleep(50);
  expect(at).toHaveLength(2);
  expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(900);
});

test("damped: a trigger during a run is another run", async () => {
  const gate = Promise.withResolvers<void>();
  let looks = 0;
  await using loop = new ReconcileLoop({
    ...damped,
    reconcile: async () => void (++looks === 1 && (await gate.promise)),
  });
  loop.trigger();
  while (looks === 0) await Bun.sleep(1);
  loop.trigger();
  gate.resolve();
  while (looks === 1) await Bun.sleep(10);
});

test("damped: a run that waited for others puts the next one off no longer, and one that used the processor does", async () => {
  const rests: number[] = [];
  for (const work of [() => Bun.sleep(1_000), () => busyFor(200)]) {
    let [looks, endedAt, rest] = [0, 0, 0];
    const look = async (): Promise<undefined> => {
      if (++looks === 2) rest = performance.now() - endedAt;
      else await work();
      endedAt = performance.now();
    };
    await using loop = new ReconcileLoop({ ...damped, reconcile: look });
    loop.trigger();
    while (looks === 0) await Bun.sleep(1);
    loop.trigger();
    while (looks === 1) await Bun.sleep(10);
    rests.push(rest);
  }
  const [waited = 0, worked = 0] = rests;
  expect(worked).toBeGreaterThan(3_500);
  expect(waited).toBeLessThan(worked);
}, 30_000);

test("without a trigger it runs at its interval, and never where it has none", async () => {
  let [now, never] = [0, 0];
  await using _now = new ReconcileLoop({ ...damped, reconcile: async () => void now++, everyMs: 10 });
  await using _never = new ReconcileLoop({ ...damped, reconcile: async () => void never++ });
  while (now === 0) await Bun.sleep(5);
  expect(never).toBe(0);
});

test("a run that fails is logged, and the next one comes by itself", async () => {
  const lines: string[] = [];
  const logger = createLogger("warn", (line) => void lines.push(line));
  let looks = 0;
  const look = async (): Promise<undefined> => {
    if (++looks === 1) throw new Error("away");
  };
  await using loop = new ReconcileLoop({ what: "the node", logger, reconcile: look, isDamped: true });
  loop.trigger();
  while (looks < 2) await Bun.sleep(10);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { message: "the node is not yet as it should be", error: "away" },
  ]);
});

test("one that has ended runs no more, and waits for the run that is under way", async () => {
  const gate = Promise.withResolvers<void>();
  let [begun, done] = [0, 0];
  const loop = new ReconcileLoop({
    ...damped,
    reconcile: async () => {
      begun++;
      await gate.promise;
      done++;
    },
  });
  loop.trigger();
  while (begun === 0) await Bun.sleep(1);
  const ended = loop[Symbol.asyncDispose]();
  gate.resolve();
  await ended;
  loop.trigger();
  await Bun.sleep(20);
  expect([begun, done]).toEqual([1, 1]);
});

/** Milliseconds of the processor's time. */
async function busyFor(ms: number): Promise<void> {
  const from = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(from);
    if (user + system > ms * 1_000) return;
  }
}
