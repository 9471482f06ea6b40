import { expect, test } from "vitest";
import { CniCode, CniError } from "../errors.ts";
import { CallTracker } from "./call-tracker.ts";
import { rpcStatus } from "./handlers.ts";

test("closed it waits for what is in flight and turns away what comes", async () => {
  const tracker = new CallTracker();
  const { promise, resolve } = Promise.withResolvers<string>();
  const call = tracker.track(() => promise);
  expect(tracker.inFlight).toBe(1);
  const closed = tracker.close(60_000);
  await expect(tracker.track(async () => "late")).rejects.toMatchObject({ code: 11 });
  resolve("done");
  expect(await call).toBe("done");
  expect(await closed).toBe(true);
});

test("a call that fails is over as well", async () => {
  const tracker = new CallTracker();
  await expect(tracker.track(async () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await tracker.close(0)).toBe(true);
});

test("it has settled with as many calls as a booting node makes, whatever becomes of them", async () => {
  const tracker = new CallTracker();
  let isSettled = false;
  void tracker.settled.then(() => {
    isSettled = true;
  });
  const call = (i: number) => tracker.track(async () => (i % 2 === 0 ? i : Promise.reject(new Error("no"))));
  for (let i = 1; i < 500; i++) await call(i).catch(() => undefined);
  expect(isSettled).toBe(false);
  await call(500);
  expect(isSettled).toBe(true);
});

test("the wait is bounded", async () => {
  const tracker = new CallTracker();
  void tracker.track(() => new Promise(() => undefined));
  expect(await tracker.close(5)).toBe(false);
});

test.each([
  [CniCode.invalidConfig, 3],
  [CniCode.decode, 3],
  [CniCode.ipamFailure, 8],
  [CniCode.tryAgainLater, 14],
  [CniCode.interfaceFailure, 13],
])("code %i of ours is gRPC status %i", (code, wanted) => {
  expect(rpcStatus(new CniError(code, "Cannot do it", { details: "why" }))).toEqual({
    code: wanted,
    details: "Cannot do it; why",
  });
});

test("a fault of ours keeps its stack to itself", () => {
  const { code, details } = rpcStatus(new TypeError("x is undefined"));
  expect(code).toBe(13);
  expect(details).not.toContain("call-tracker.test");
});
