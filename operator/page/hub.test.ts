import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../../shared/log.ts";
import type { DocumentSource } from "../document-source.ts";
import { type Follower, Hub } from "./hub.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A cluster that counts what it is asked. */
class CountingSource implements DocumentSource {
  readonly title = "a cluster";
  readonly isLive = true;
  readonly asked = { nodes: 0, documents: 0 };
  names: readonly string[] = ["a"];
  fault: string | undefined;

  async nodes(): Promise<readonly string[]> {
    this.asked.nodes++;
    if (this.fault !== undefined) throw new Error(this.fault);
    return this.names;
  }

  async cluster(): Promise<never> {
    this.asked.documents++;
    throw new Error("there is none");
  }

  async get(): Promise<never> {
    this.asked.documents++;
    throw new Error("there is none");
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

const follower: Follower = { wishes: [{ t: "all", kind: "pods" }], kept: [], changed: () => undefined };

test("after the last page has closed nothing is asked any more", async () => {
  const source = new CountingSource();
  using hub = new Hub(
    source,
    createLogger("warn", () => undefined),
  );
  hub.follow(follower, undefined);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(source.asked.documents).toBeGreaterThan(0);
  hub.leave(follower);
  await vi.advanceTimersByTimeAsync(30_000);
  const asked = { ...source.asked };
  await vi.advanceTimersByTimeAsync(120_000);
  expect(source.asked).toEqual(asked);
});

test("nodes that cannot be listed are asked for ever more rarely, and each new reason is said once", async () => {
  const source = new CountingSource();
  const log: string[] = [];
  using hub = new Hub(
    source,
    createLogger("warn", (line) => log.push(line)),
  );
  source.fault = "the door is shut";
  hub.follow(follower, undefined);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(source.asked.nodes).toBeGreaterThan(3);
  expect(source.asked.nodes).toBeLessThan(15);
  expect(log).toEqual([expect.stringContaining("the door is shut")]);
  source.fault = "the house is gone";
  await vi.advanceTimersByTimeAsync(60_000);
  expect(log).toEqual([expect.anything(), expect.stringContaining("the house is gone")]);
});

test("a cluster without nodes is asked no more often than one that has some", async () => {
  const source = new CountingSource();
  source.names = [];
  using hub = new Hub(
    source,
    createLogger("warn", () => undefined),
  );
  hub.follow(follower, undefined);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(source.asked.nodes).toBeGreaterThan(5);
  expect(source.asked.nodes).toBeLessThan(15);
});
