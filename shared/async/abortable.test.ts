import { heapStats } from "bun:jsc";
import { expect, test } from "vitest";
import { abortable, pause } from "./abortable.ts";

test("a pause ends when its time is up, or when it is aborted, before or meanwhile", async () => {
  const stopping = new AbortController();
  await pause(1, stopping.signal);
  const long = pause(3_600_000, stopping.signal);
  stopping.abort();
  await long;
  await pause(3_600_000, stopping.signal);
});

test("a pause does not end before its time is up, nor by another's signal", async () => {
  const [own, other] = [new AbortController(), new AbortController()];
  const started = performance.now();
  const paused = pause(40, own.signal);
  const pausedBeside = pause(3_600_000, other.signal);
  other.abort();
  await pausedBeside;
  await paused;
  // Timers count in whole milliseconds.
  expect(performance.now() - started).toBeGreaterThanOrEqual(39);
});

test("a pause leaves nothing behind with a signal that lasts", async () => {
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

test("who is aborted stops waiting, before or meanwhile, and otherwise gets what came of the work", async () => {
  const stopping = new AbortController();
  expect(await abortable(Promise.resolve(1), stopping.signal)).toBe(1);
  await expect(abortable(Promise.reject(new Error("no")), stopping.signal)).rejects.toThrow("no");
  const waiting = abortable(new Promise(() => undefined), stopping.signal);
  stopping.abort(new Error("the agent stops"));
  await expect(waiting).rejects.toThrow("the agent stops");
  await expect(abortable(new Promise(() => undefined), stopping.signal)).rejects.toThrow("the agent stops");
});
