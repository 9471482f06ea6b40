import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../../shared/log.ts";
import type { Problem } from "../datapath/datapath.ts";
import { DataPathRepair } from "./data-path-repair.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const down: Problem = { code: 51, message: "the bridge is down" };
const gone: Problem = { code: 51, message: "the rules are gone" };

/** A data path that has these problems at one look after the other; the last ones stay. */
function brokenPath(...looks: readonly (readonly Problem[])[]) {
  const left = [...looks];
  const lines: string[] = [];
  const dataPath = {
    starts: 0,
    fault: undefined as Error | undefined,
    async problems(): Promise<readonly Problem[]> {
      return (left.length > 1 ? left.shift() : left[0]) ?? [];
    },
    async start(): Promise<void> {
      dataPath.starts++;
      if (dataPath.fault !== undefined) throw dataPath.fault;
    },
  };
  const logger = createLogger("info", (line) => lines.push(line));
  const repair = new DataPathRepair({ dataPath: dataPath as never, logger }, { intervalMs: 10_000, longestMs: 60_000 });
  return { dataPath, lines, repair };
}

describe("the repair of a data path", () => {
  test("does nothing where nothing is wrong", async () => {
    const { dataPath, lines, repair } = brokenPath([]);
    await repair.run();
    expect([dataPath.starts, lines]).toEqual([0, []]);
  });

  test("starts it again, once, and is done where that has helped", async () => {
    const { dataPath, lines, repair } = brokenPath([down], []);
    await repair.run();
    expect(dataPath.starts).toBe(1);
    expect(lines.join()).toContain("repairing the data path");
    await vi.advanceTimersByTimeAsync(120_000);
    expect(dataPath.starts).toBe(1);
  });

  test("that has not helped comes again by itself, later each time", async () => {
    const { dataPath, repair } = brokenPath([down]);
    await repair.run();
    await repair.run();
    expect(dataPath.starts).toBe(1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(dataPath.starts).toBe(2);
    await vi.advanceTimersByTimeAsync(60_000);
    const soon = dataPath.starts;
    expect(soon).toBeGreaterThan(2);
    expect(soon).toBeLessThan(12);
    await repair.stop();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(dataPath.starts).toBe(soon);
  });

  test("of something new begins anew, as it was another matter", async () => {
    const { dataPath, repair } = brokenPath([down], [gone], [gone], []);
    await repair.run();
    await repair.run();
    expect(dataPath.starts).toBe(2);
  });

  test("of the same that was well in between begins anew", async () => {
    const { dataPath, repair } = brokenPath([down], [down], [], [down], []);
    await repair.run();
    await repair.run();
    expect(dataPath.starts).toBe(1);
    await repair.run();
    expect(dataPath.starts).toBe(2);
  });

  test("never throws, and says why it has failed", async () => {
    const { dataPath, lines, repair } = brokenPath([down]);
    dataPath.fault = new Error("the kernel says no");
    await repair.run();
    expect(lines.join()).toContain("the kernel says no");
  });

  test("is one for all who ask meanwhile", async () => {
    const { dataPath, repair } = brokenPath([down], []);
    const both = [repair.run(), repair.run()];
    expect(both[0]).toBe(both[1]);
    await Promise.all(both);
    expect(dataPath.starts).toBe(1);
  });

  test("that is stopped waits for the one that runs", async () => {
    const { dataPath, repair } = brokenPath([down], []);
    void repair.run();
    await repair.stop();
    expect(dataPath.starts).toBe(1);
  });
});
