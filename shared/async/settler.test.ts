import { expect, test } from "vitest";
import { createLogger } from "../log.ts";
import { Settler } from "./settler.ts";

const quiet = createLogger("error", () => undefined);

test("triggers that come together are one run, and one that comes during a run is another", async () => {
  const gate = Promise.withResolvers<void>();
  let [runs, atOnce, most] = [0, 0, 0];
  await using settler = new Settler(
    "the switch",
    async () => {
      runs++;
      most = Math.max(most, ++atOnce);
      if (runs === 1) await gate.promise;
      atOnce--;
    },
    quiet,
  );
  settler.trigger();
  settler.trigger();
  const first = settler.run();
  while (runs === 0) await Bun.sleep(1);
  const second = settler.run();
  gate.resolve();
  await Promise.all([first, second]);
  expect([runs, most]).toEqual([2, 1]);
});

test("who waits for a run hears of its failure, and it is done again without a word", async () => {
  let runs = 0;
  await using settler = new Settler(
    "the switch",
    async () => {
      if (++runs === 1) throw new Error("away");
    },
    quiet,
  );
  await expect(settler.run()).rejects.toThrow("away");
  while (runs < 2) await Bun.sleep(10);
});

test("what is refused fails nobody who waits, is said once, and is tried again until it is taken", async () => {
  const lines: string[] = [];
  let runs = 0;
  const logger = createLogger("warn", (line) => void lines.push(line));
  await using settler = new Settler("the switch", async () => (++runs < 3 ? "refused" : undefined), logger);
  await settler.run();
  while (runs < 3) await Bun.sleep(10);
  expect(lines.map((line) => JSON.parse(line).error)).toEqual(["refused"]);
});

test("one that has ended begins nothing, and lets nobody wait", async () => {
  let runs = 0;
  const settler = new Settler("the switch", async () => void runs++, quiet);
  const waiting = expect(settler.run()).rejects.toThrow("the agent stops");
  await settler[Symbol.asyncDispose]();
  await waiting;
  settler.trigger();
  expect(runs).toBe(0);
});
