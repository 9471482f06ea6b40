import { heapStats } from "bun:jsc";
import { expect, test } from "vitest";
import { pause } from "./pause.ts";

test("ends when its time is up, or when it is aborted, before or meanwhile", async () => {
  const stopping = new AbortController();
  await pause(1, stopping.signal);
  const long = pause(3_600_000, stopping.signal);
  stopping.abort();
  await long;
  await pause(3_600_000, stopping.signal);
});

test("leaves nothing behind with a signal that lasts", async () => {
  const { signal } = new AbortController();
  const promises = (): number => {
    Bun.gc(true);
    return heapStats().objectTypeCounts["Promise"] ?? 0;
  };
  const before = promises();
  const times = 1_000;
  for (let i = 0; i < times; i++) await pause(0, signal);
  expect(promises() - before).toBeLessThan(times / 2);
});
