import { afterEach, expect, test, vi } from "vitest";
import { createLogger } from "../log.ts";
import { runDaemon } from "./daemon.ts";
import type { System } from "./system.ts";

const system = { notify: () => undefined } as unknown as System;

afterEach(() => vi.restoreAllMocks());

test("a daemon's code is compiled late while it is new, and as usual once it has settled", async () => {
  const policies: number[] = [];
  vi.spyOn(Bun.unsafe, "setJITPolicy").mockImplementation((scale) => void policies.push(scale));
  const lost = Promise.withResolvers<string>();
  const settled = Promise.withResolvers<void>();
  const context = { who: "the daemon", logger: createLogger("error", () => undefined), system, env: {} };
  const running = { lost: lost.promise, settled: settled.promise, stop: async () => undefined };
  const ended = runDaemon(context, async () => running);
  await vi.waitFor(() => expect(policies).toEqual([500]));
  settled.resolve();
  await vi.waitFor(() => expect(policies).toEqual([500, 1]));
  lost.resolve("its socket has gone");
  expect(await ended).toBe(1);
});
