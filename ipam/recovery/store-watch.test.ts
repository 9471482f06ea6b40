import { rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { openVerified } from "./open-verified.ts";
import { StoreWatch } from "./store-watch.ts";

/** Pages of the log, and those that are in the database as well, as another process sees it. */
function logOf(path: string): { readonly log: number; readonly checkpointed: number } {
  using db = new DatabaseSync(path);
  const { log, checkpointed } = db.prepare("PRAGMA wal_checkpoint(NOOP)").get() as {
    log: number;
    checkpointed: number;
  };
  return { log, checkpointed };
}

let calls = 0;

/** Calls, each a transaction, until they have written so many pages. @returns the most that the log had meanwhile */
function write(allocator: Allocator, pages: number): number {
  let most = 0;
  for (let written = 0; written < pages; ) {
    const before = logOf(allocator.path).log;
    allocator.recordPendingDetach({ network: "net", sandboxId: `s${++calls}`, ifname: "eth0" });
    const { log } = logOf(allocator.path);
    written += log > before ? log - before : log;
    most = Math.max(most, log);
  }
  return most;
}

const open = (dataDir: string): Promise<Allocator> => openVerified(dataDir, () => undefined);

test("no call of a long-lived process waits for the disk: the log grows until its checkpoint", async () => {
  using scratch = scratchDir();
  using allocator = await open(scratch.path);
  expect(write(allocator, 1_200)).toBeGreaterThanOrEqual(1_200);
  expect(logOf(allocator.path).checkpointed).toBe(0);
  allocator.checkpoint();
  // The next log has begun, so that no call has to wait for that either.
  expect(logOf(allocator.path).log).toBeLessThan(10);
  expect(write(allocator, 10)).toBeLessThan(30);
  expect(allocator.pendingDetaches().length).toBeGreaterThan(200);
});

test("without anybody who makes checkpoints SQLite makes them", async () => {
  using scratch = scratchDir();
  {
    using allocator = await Allocator.open(scratch.path);
    expect(write(allocator, 1_200)).toBeLessThan(1_100);
  }
  using allocator = await open(scratch.path);
  expect(write(allocator, 4_300)).toBeLessThan(4_200);
});

test("makes a checkpoint where there is much to write, and none for little", async () => {
  using scratch = scratchDir();
  using watch = new StoreWatch();
  using allocator = await open(scratch.path);
  const checkpoint = vi.spyOn(allocator, "checkpoint");
  try {
    await watch.start(allocator, 10);
    write(allocator, 100);
    const looks = checkpoint.mock.calls.length;
    await expect.poll(() => checkpoint.mock.calls.length).toBeGreaterThan(looks);
    expect(logOf(allocator.path).checkpointed).toBe(0);
    write(allocator, 200);
    await expect.poll(() => logOf(allocator.path).log).toBeLessThan(10);
  } finally {
    checkpoint.mockRestore();
  }
});

test("goes on after a checkpoint that fails, and tells of a database that has gone", async () => {
  using scratch = scratchDir();
  using watch = new StoreWatch();
  const allocator = await open(scratch.path);
  const checkpoint = vi.spyOn(allocator, "checkpoint").mockImplementation(() => {
    throw new Error("the disk is full");
  });
  try {
    await watch.start(allocator, 10);
    await expect.poll(() => checkpoint.mock.calls.length).toBeGreaterThan(1);
    rmSync(allocator.path);
    expect(await watch.lost).toContain("it is gone");
  } finally {
    checkpoint.mockRestore();
    allocator[Symbol.dispose]();
  }
  // A look that was on its way when the process stopped.
  expect(() => allocator.checkpoint()).not.toThrow();
});
