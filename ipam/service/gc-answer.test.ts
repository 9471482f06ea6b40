import { expect, test } from "vitest";
import { limits } from "../../shared/limits.ts";
import { GcResponse } from "../../shared/proto/pipette-messages.ts";
import { gcAnswer } from "./ipam-rpcs.ts";

const removedOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ containerId: `${i}`.padStart(64, "0"), ifname: "eth0" }));

test("an answer of the usual length is told whole", () => {
  const collected = { removed: removedOf(250), failures: ["a eth0: it stands still"] };
  expect(gcAnswer(collected)).toEqual({ ...collected, leftOut: 0 });
});

test("one of any length fits into a message, says how much it leaves out, and failures come first", () => {
  const failures = Array.from({ length: 100 }, (_, i) => `c${i} eth0: schön ${"x".repeat(500)}`);
  const answer = gcAnswer({ removed: removedOf(100_000), failures });
  expect(answer.failures).toEqual(failures);
  expect([answer.removed.length > 10_000, answer.removed.length + answer.leftOut]).toEqual([true, 100_000]);
  expect(GcResponse.encode(answer).length).toBeLessThan(limits.messageBytes);
  const many = gcAnswer({ removed: removedOf(10), failures: Array.from({ length: 9_000 }, () => "y".repeat(1_000)) });
  expect([many.removed.length, many.leftOut > 1_000]).toEqual([0, true]);
  expect(GcResponse.encode(many).length).toBeLessThan(limits.messageBytes);
});
