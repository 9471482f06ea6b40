import { describe, expect, test } from "vitest";
import { KeyedMutex } from "./keyed-mutex.ts";

/** A work that ends when it is told to. */
function gate(): { readonly work: () => Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { work: () => promise, open: () => resolve() };
}

const what = { what: 'ADD of "c1"' };
const turns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe("KeyedMutex", () => {
  test("one key: one after the other, in the order of asking", async () => {
    const mutex = new KeyedMutex(8);
    const seen: string[] = [];
    const first = gate();
    const works = [
      mutex.run("a", what, async () => {
        seen.push("1 begins");
        await first.work();
        seen.push("1 ends");
      }),
      mutex.run("a", what, async () => void seen.push("2")),
      mutex.run("a", what, async () => void seen.push("3")),
    ];
    await turns();
    expect(seen).toEqual(["1 begins"]);
    first.open();
    await Promise.all(works);
    expect(seen).toEqual(["1 begins", "1 ends", "2", "3"]);
  });

  test("different keys do not wait for each other", async () => {
    const mutex = new KeyedMutex(8);
    const first = gate();
    const held = mutex.run("a", what, first.work);
    expect(await mutex.run("b", what, async () => "done")).toBe("done");
    expect(mutex.running).toBe(1);
    first.open();
    await held;
    expect(mutex.running).toBe(0);
  });

  test("a work that fails gives the key on", async () => {
    const mutex = new KeyedMutex(8);
    const failed = mutex.run("a", what, async () => Promise.reject(new Error("no")));
    const next = mutex.run("a", what, async () => 2);
    await expect(failed).rejects.toThrow("no");
    expect(await next).toBe(2);
  });

  test("a waiter whose caller has gone leaves without effect, and those behind it keep their turn", async () => {
    const mutex = new KeyedMutex(8);
    const first = gate();
    const gone = new AbortController();
    const seen: string[] = [];
    const held = mutex.run("a", what, first.work);
    const waiting = mutex.run("a", { ...what, signal: gone.signal }, async () => void seen.push("gone"));
    const behind = mutex.run("a", what, async () => void seen.push("behind"));
    gone.abort();
    await expect(waiting).rejects.toMatchObject({ code: 11, message: expect.stringContaining("its caller has gone") });
    first.open();
    await Promise.all([held, behind]);
    expect(seen).toEqual(["behind"]);
  });

  test("a caller that goes in the very moment of its turn has no effect either", async () => {
    const mutex = new KeyedMutex(8);
    const first = gate();
    const gone = new AbortController();
    const held = mutex.run("a", what, first.work);
    const waiting = mutex.run("a", { ...what, signal: gone.signal }, async () => "ran");
    // The mutex lets go of the signal at the begin: nobody tells it of what happens right after.
    const { signal } = gone;
    signal.removeEventListener = (...args: Parameters<AbortSignal["removeEventListener"]>) => {
      AbortSignal.prototype.removeEventListener.apply(signal, args);
      gone.abort();
    };
    first.open();
    await held;
    await expect(waiting).rejects.toMatchObject({ code: 11 });
    expect(await mutex.run("a", what, async () => "free again")).toBe("free again");
  });

  test("one that has gone before it asked is refused", async () => {
    const mutex = new KeyedMutex(8);
    await expect(mutex.run("a", { ...what, signal: AbortSignal.abort() }, async () => 1)).rejects.toMatchObject({
      code: 11,
    });
    expect(await mutex.run("a", what, async () => 1)).toBe(1);
  });

  test("a waiter whose time is up leaves, and its error names the one who asked", async () => {
    const mutex = new KeyedMutex(8);
    const first = gate();
    const held = mutex.run("a", what, first.work);
    async function askForTheKey(): Promise<number> {
      return await mutex.run("a", { ...what, timeoutMs: 10 }, async () => 1);
    }
    const error = await askForTheKey().catch((caught: Error) => caught);
    expect(error).toMatchObject({ code: 11, message: expect.stringContaining('Cannot begin ADD of "c1"') });
    expect((error as Error).stack).toContain("askForTheKey");
    first.open();
    await held;
  });

  test("the queue is bounded", async () => {
    const mutex = new KeyedMutex(2);
    const first = gate();
    const held = mutex.run("a", what, first.work);
    const waiting = [1, 2].map((n) => mutex.run("a", what, async () => n));
    await expect(mutex.run("a", what, async () => 3)).rejects.toMatchObject({ code: 11 });
    first.open();
    expect(await Promise.all([held, ...waiting])).toEqual([undefined, 1, 2]);
  });

  test("idle waits for what runs and what waits", async () => {
    const mutex = new KeyedMutex(8);
    await mutex.idle();
    const first = gate();
    let done = 0;
    const works = [mutex.run("a", what, first.work), mutex.run("a", what, async () => void done++)];
    const idle = mutex.idle().then(() => done);
    await turns();
    first.open();
    expect(await idle).toBe(1);
    await Promise.all(works);
  });
});
