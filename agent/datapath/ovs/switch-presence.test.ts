import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CniError } from "../../../shared/errors.ts";
import { OpenFlowError } from "../../protocols/openflow/mod.ts";
import { OvsdbCode, OvsdbError } from "../../protocols/ovsdb/mod.ts";
import { allOf, answeredWithin, SwitchPresence, withCniErrors } from "./switch-presence.ts";

const failure = async (caught: unknown): Promise<unknown> =>
  withCniErrors(() => Promise.reject(caught)).catch((error: unknown) => error);

describe("errors of Open vSwitch to whoever calls a verb", () => {
  test.each([
    ["unreachable", 11],
    ["late", 11],
    ["disconnected", 11],
    ["closed", 11],
    ["notSeen", 11],
    ["timedOut", 11],
    ["refused", 102],
    ["invalid", 102],
    ["malformed", 102],
  ] as const)("of the database: %s", async (name, code) => {
    const caught = new OvsdbError(OvsdbCode[name], "Cannot add it: no");
    expect(await failure(caught)).toMatchObject({ code, cause: caught, message: "Cannot add it: no" });
  });

  test.each([
    ["late", 11],
    ["lost", 11],
    ["malformed", 11],
    ["refused", 102],
  ] as const)("of the switch: %s", async (kind, code) => {
    const caught = new OpenFlowError(kind as never, "add it", "no");
    const error = await failure(caught);
    expect(error).toMatchObject({ code });
    expect((error as CniError).details ?? "").toMatch(code === 11 ? /tells whether Open vSwitch runs/ : /^$/);
  });

  test("do not have the words that runtimes take for success", async () => {
    const said = ["Not Found", "No such device", "no such file or directory"].join(", and ");
    expect(await failure(new OvsdbError(OvsdbCode.refused, said))).toMatchObject({
      message: "absent, and absent, and absent",
    });
  });

  test("others' pass as they are, and so do answers", async () => {
    const caught = new Error("not found");
    expect(await failure(caught)).toBe(caught);
    expect(await withCniErrors(async () => 7)).toBe(7);
  });
});

test("of all that goes on at once the first error counts, once all has ended", async () => {
  const ended: string[] = [];
  const slow = Bun.sleep(5).then(() => void ended.push("slow"));
  await expect(allOf([Promise.reject(new Error("first")), slow, Promise.reject(new Error("second"))])).rejects.toThrow(
    "first",
  );
  expect(ended).toEqual(["slow"]);
  await allOf([slow]);
});

describe("a switch", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  test("that does not answer in time is an error that says where to look", async () => {
    const never = answeredWithin(50, "look", new Promise<void>(() => undefined));
    const said = expect(never).rejects.toMatchObject({
      code: 11,
      message: "Cannot look: the switch has not answered within 50 ms",
    });
    await vi.advanceTimersByTimeAsync(50);
    await said;
    expect(await answeredWithin(50, "look", Promise.resolve(7))).toBe(7);
  });

  test("that is back in time has kept nobody from anything; one that stays away has, until it is back", async () => {
    using presence = new SwitchPresence();
    const { signal } = presence;
    presence.update(false, () => "it is gone");
    await vi.advanceTimersByTimeAsync(2_900);
    presence.update(true, () => "");
    await vi.advanceTimersByTimeAsync(10_000);
    expect([signal.aborted, presence.signal]).toEqual([false, signal]);
    presence.update(false, () => "it is gone");
    await vi.advanceTimersByTimeAsync(2_900);
    presence.update(false, () => "it is gone for good");
    await vi.advanceTimersByTimeAsync(2_900);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(signal.reason).toBeInstanceOf(CniError);
    expect(signal.reason).toMatchObject({
      code: 11,
      message: "Cannot give a pod its port: it is gone for good, wanted ovs-vswitchd to run",
    });
    presence.update(true, () => "");
    expect(presence.signal.aborted).toBe(false);
  });

  test("that nobody asks for any more is not waited for", async () => {
    const presence = new SwitchPresence();
    presence.update(false, () => "it is gone");
    presence[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(presence.signal.aborted).toBe(false);
  });
});
