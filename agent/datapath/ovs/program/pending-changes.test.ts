import { describe, expect, test, vi } from "vitest";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { PendingCall, PendingChanges } from "./pending-changes.ts";

const call = (limitMs = 1e6) => new PendingCall('put "a" into the switch', limitMs, () => "it is away");
const error = new CniError(CniCode.interfaceFailure, "Cannot: refused");

function queued(...messages: readonly number[]): PendingChanges {
  const changes = new PendingChanges();
  for (const each of messages) {
    const made = call();
    made.end();
    changes.add({ changes: new Map(), messages: each, call: made, isKept: false });
  }
  return changes;
}
const sizes = (changes: Iterable<{ readonly messages: number }>) => [...changes].map(({ messages }) => messages);

describe("waiting changes", () => {
  test.each([
    ["all that fit", [1, 2, 3], 6, [1, 2, 3]],
    ["as many as fit", [1, 2, 3], 5, [1, 2]],
    ["the first alone where it does not fit", [9, 1], 5, [9]],
    ["the first alone where the second does not fit", [5, 1], 5, [5]],
    ["none where none waits", [], 5, []],
  ])("go together: %s", (_what, given, most, batch) => {
    const changes = queued(...given);
    expect(sizes(changes.batch(most))).toEqual(batch);
    expect(changes.count).toBe(given.length);
    expect([sizes(changes.take(1)), sizes(changes)]).toEqual([given.slice(0, 1), given.slice(1)]);
  });

  test("are dropped where they are kept and nobody waits for them", () => {
    const changes = new PendingChanges();
    for (const [messages, isOver, isKept] of [
      [1, true, true],
      [2, true, false],
      [3, false, true],
      [4, false, false],
    ] as const) {
      const made = call();
      if (isOver) made.end();
      changes.add({ changes: new Map(), messages, call: made, isKept });
    }
    changes.dropOver();
    expect(sizes(changes)).toEqual([2, 3, 4]);
    for (const { call: waiting } of changes) waiting.end();
  });
});

describe("a call", () => {
  test("ends once", async () => {
    const [ended, failed] = [call(), call()];
    expect(ended.isOver).toBe(false);
    ended.end();
    ended.fail(error);
    failed.fail(error);
    failed.end();
    await expect(ended.done).resolves.toBeUndefined();
    await expect(failed.done).rejects.toBe(error);
    expect([ended.isOver, failed.isOver]).toEqual([true, true]);
  });

  test("fails when its time is up, with what is wrong, and not if it has ended before", async () => {
    vi.useFakeTimers();
    try {
      const [late, ended] = [call(50), call(50)];
      ended.end();
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(50);
      await expect(late.done).rejects.toMatchObject({
        code: 11,
        message:
          'Cannot put "a" into the switch: the switch has not taken it after 50 ms (it is away); it gets it as soon as it can',
      });
      expect(late.isOver).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});
