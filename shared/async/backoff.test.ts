import { expect, test } from "vitest";
import { Backoff, retry } from "./backoff.ts";

test("pauses double up to the longest, and begin anew after a success", () => {
  const backoff = new Backoff({ firstMs: 100, longestMs: 350 });
  expect([backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([100, 200, 350, 350]);
  backoff.reset();
  expect(backoff.next()).toBe(100);
});

test("the random part of a pause is as large as asked for", () => {
  const pauses = Array.from({ length: 200 }, () => new Backoff({ firstMs: 100, longestMs: 100, jitter: 0.5 }).next());
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(50);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(100);
  expect(new Set(pauses).size).toBeGreaterThan(100);
});

test("attempts go on until one succeeds, and each failure is heard", async () => {
  const heard: unknown[] = [];
  let attempts = 0;
  const attempt = async (): Promise<string> => {
    if (++attempts < 3) throw `failure ${attempts}`;
    return "done";
  };
  const failed = (caught: unknown, pauseMs: number): void => void heard.push([caught, pauseMs]);
  const { signal } = new AbortController();
  expect(await retry(attempt, { firstMs: 1, longestMs: 10, signal, failed })).toBe("done");
  expect(heard).toEqual([
    ["failure 1", 1],
    ["failure 2", 2],
  ]);
});

test("attempts end when the one who hears of the failure gives up, or the signal is aborted", async () => {
  const fail = (): Promise<never> => Promise.reject(new Error("away"));
  const rethrow = (caught: unknown): never => {
    throw caught;
  };
  const stopping = new AbortController();
  const times = { firstMs: 3_600_000, longestMs: 3_600_000, signal: stopping.signal };
  await expect(retry(fail, { ...times, failed: rethrow })).rejects.toThrow("away");
  const stop = (): void => stopping.abort(new Error("the agent stops"));
  await expect(retry(fail, { ...times, failed: stop })).rejects.toThrow("the agent stops");
  let attempts = 0;
  await expect(retry(async () => attempts++, { ...times, failed: rethrow })).rejects.toThrow("the agent stops");
  expect(attempts).toBe(0);
});
