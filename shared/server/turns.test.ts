import { expect, test } from "vitest";
import { callsPerTurn, Turns } from "./turns.ts";

/** Somebody with so many calls, who tells when each begins. */
class Asker {
  readonly #name: string;
  readonly #told: string[];
  left: number;

  constructor(name: string, calls: number, told: string[]) {
    this.#name = name;
    this.left = calls;
    this.#told = told;
  }

  beginNext(): boolean {
    if (this.left > 0) this.#told.push(this.#name);
    this.left = Math.max(0, this.left - 1);
    return this.left > 0;
  }
}

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function loops(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turnOfTheLoop();
}

test("who comes alone begins at once", () => {
  const told: string[] = [];
  new Turns().enter(new Asker("a", 1, told));
  expect(told).toEqual(["a"]);
});

test("each gets one turn after the other, however many calls he has, and who comes later is not behind all of them", async () => {
  const told: string[] = [];
  const turns = new Turns();
  turns.enter(new Asker("a", 1000, told));
  turns.enter(new Asker("b", 20, told));
  await loops(2);
  const before = told.length;
  turns.enter(new Asker("c", 1, told));
  await loops(3);
  expect(told.indexOf("c") - before).toBeLessThanOrEqual(2);
  await loops(5);
  // By turns as long as both have something.
  const [as, bs] = ["a", "b"].map((name) => told.slice(callsPerTurn, 40).filter((other) => other === name).length);
  expect(Math.abs((as ?? 0) - (bs ?? 0))).toBeLessThan(callsPerTurn);
});

test("between a few calls everything else goes on", async () => {
  const told: string[] = [];
  const turns = new Turns();
  for (let i = 0; i < 3 * callsPerTurn; i++) turns.enter(new Asker(String(i), 1, told));
  expect(told).toHaveLength(callsPerTurn);
  let between = 0;
  for (; told.length < 3 * callsPerTurn && between < 100; between++) await turnOfTheLoop();
  expect(told.map(Number)).toEqual(Array.from({ length: 3 * callsPerTurn }, (_, i) => i));
  expect(between).toBeGreaterThan(1);
});

test("who has left has no turn any more, and who enters twice has one", async () => {
  const told: string[] = [];
  const turns = new Turns();
  const [a, b, c] = [new Asker("a", callsPerTurn, told), new Asker("b", 1, told), new Asker("c", 2, told)];
  turns.enter(a);
  turns.enter(b);
  turns.enter(c);
  turns.enter(c);
  turns.leave(b);
  await loops(5);
  expect(told).toEqual([...Array.from({ length: callsPerTurn }, () => "a"), "c", "c"]);
});
