import { expect, test } from "vitest";
import { createLogger } from "../log.ts";
import { LookSoon } from "./look-soon.ts";

const quiet = createLogger("error", () => undefined);
const silent = { what: "it", logger: quiet };

test("a thousand hints are one look at once, and one more after a rest", async () => {
  const at: number[] = [];
  await using soon = new LookSoon({ ...silent, look: async () => void at.push(performance.now()) });
  soon.hint();
  while (at.length === 0) await Bun.sleep(1);
  for (let i = 0; i < 1_000; i++) soon.hint();
  while (at.length === 1) await Bun.sleep(10);
  await Bun.sleep(50);
  expect(at).toHaveLength(2);
  expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(900);
});

test("what is said during a look is looked at", async () => {
  const gate = Promise.withResolvers<void>();
  let looks = 0;
  await using soon = new LookSoon({ ...silent, look: async () => void (++looks === 1 && (await gate.promise)) });
  soon.hint();
  while (looks === 0) await Bun.sleep(1);
  soon.hint();
  gate.resolve();
  while (looks === 1) await Bun.sleep(10);
});

test("a look that has waited for others puts the next one off no longer, and one that has worked does", async () => {
  const rests: number[] = [];
  for (const work of [() => Bun.sleep(1_000), () => busyFor(200)]) {
    let [looks, endedAt, rest] = [0, 0, 0];
    const look = async (): Promise<void> => {
      if (++looks === 2) rest = performance.now() - endedAt;
      else await work();
      endedAt = performance.now();
    };
    await using soon = new LookSoon({ ...silent, look });
    soon.hint();
    while (looks === 0) await Bun.sleep(1);
    soon.hint();
    while (looks === 1) await Bun.sleep(10);
    rests.push(rest);
  }
  const [waited = 0, worked = 0] = rests;
  expect(worked).toBeGreaterThan(3_500);
  expect(waited).toBeLessThan(worked);
}, 30_000);

test("without a hint it looks every now and then, and never where nobody wants that", async () => {
  let [now, never] = [0, 0];
  await using _now = new LookSoon({ ...silent, look: async () => void now++, everyMs: 10 });
  await using _never = new LookSoon({ ...silent, look: async () => void never++ });
  while (now === 0) await Bun.sleep(5);
  expect(never).toBe(0);
});

test("a look that fails is said, and the next one comes all the same", async () => {
  const lines: string[] = [];
  const logger = createLogger("warn", (line) => void lines.push(line));
  let looks = 0;
  const look = async (): Promise<void> => {
    if (++looks === 1) throw new Error("away");
  };
  await using soon = new LookSoon({ what: "the node", logger, look });
  soon.hint();
  while (looks === 0) await Bun.sleep(1);
  soon.hint();
  while (looks === 1) await Bun.sleep(10);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { message: "cannot look at the node", error: "away" },
  ]);
});

test("one that has ended looks no more, and waits for the look that it is in", async () => {
  const gate = Promise.withResolvers<void>();
  let [begun, done] = [0, 0];
  const soon = new LookSoon({
    ...silent,
    look: async () => {
      begun++;
      await gate.promise;
      done++;
    },
  });
  soon.hint();
  while (begun === 0) await Bun.sleep(1);
  const ended = soon[Symbol.asyncDispose]();
  gate.resolve();
  await ended;
  soon.hint();
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
