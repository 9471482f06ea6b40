import { expect, test } from "vitest";
import { withTimeout } from "./with-timeout.ts";

const never = (): never => {
  throw new Error("late");
};

test("work that ends in time answers or fails by itself, and leaves no timer behind", async () => {
  let late = 0;
  expect(await withTimeout(Promise.resolve(1), 5, () => late++)).toBe(1);
  await expect(withTimeout(Promise.reject(new Error("no")), 5, () => late++)).rejects.toThrow("no");
  await Bun.sleep(20);
  expect(late).toBe(0);
});

test("work that is late fails as the caller says, or is answered for", async () => {
  const endless = new Promise<number>(() => undefined);
  await expect(withTimeout(endless, 1, never)).rejects.toThrow("late");
  expect(await withTimeout(endless, 1, () => "instead")).toBe("instead");
});

test("work that fails after its time is nobody's unhandled rejection", async () => {
  const failing = Promise.withResolvers<number>();
  expect(await withTimeout(failing.promise, 1, () => 0)).toBe(0);
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", onUnhandled);
  try {
    failing.reject(new Error("too late"));
    await Bun.sleep(10);
  } finally {
    process.off("unhandledRejection", onUnhandled);
  }
  expect(unhandled).toEqual([]);
});
