import { afterEach, expect, test, vi } from "vitest";
import { createLogger } from "../log.ts";
import { runDaemon } from "./daemon.ts";
import type { System } from "./system.ts";

const system = { notify: () => undefined } as unknown as System;
const context = { who: "the daemon", logger: createLogger("error", () => undefined), system, env: {} };

/** How many times later than usual code is compiled, each time that it was set. */
function heardPolicies(): readonly number[] {
  const heard: number[] = [];
  vi.spyOn(Bun.unsafe, "setJITPolicy").mockImplementation((scale) => void heard.push(scale));
  return heard;
}

afterEach(() => vi.restoreAllMocks());

test("the code of one that serves calls is left to the interpreter while it is new, and compiled once it has settled", async () => {
  const policies = heardPolicies();
  const lost = Promise.withResolvers<string>();
  const settled = Promise.withResolvers<void>();
  const running = { lost: lost.promise, settled: settled.promise, stop: async () => undefined };
  const ended = runDaemon(context, async () => running);
  await vi.waitFor(() => expect(policies).toEqual([500]));
  settled.resolve();
  await vi.waitFor(() => expect(policies).toEqual([500, 1]));
  lost.resolve("its socket has gone");
  expect(await ended).toBe(1);
});

test("that of one for which nobody waits is compiled as usual from the beginning", async () => {
  const policies = heardPolicies();
  const running = { lost: Promise.resolve("it has gone"), settled: undefined, stop: async () => undefined };
  expect(await runDaemon(context, async () => running)).toBe(1);
  expect(policies).toEqual([1]);
});
