import { expect, test } from "vitest";
import { LateSignal } from "./late-signal.ts";

test("ends with its own end and with its parent's, and tells those who listen, before or meanwhile", () => {
  for (const whose of ["own", "parent"] as const) {
    const parent = new LateSignal();
    const signal = new LateSignal(parent);
    let [told, untold] = [0, 0];
    const drop = (): void => void untold++;
    signal.addEventListener("abort", () => told++, { once: true });
    signal.addEventListener("abort", drop);
    signal.removeEventListener("abort", drop);
    expect([signal.aborted, LateSignal.real(signal).aborted]).toEqual([false, false]);
    (whose === "own" ? signal : parent).abort();
    expect([told, untold, signal.aborted, parent.aborted]).toEqual([1, 0, true, whose === "parent"]);
    expect(LateSignal.real(signal).aborted).toBe(true);
  }
});

test("one that has ended before anybody listened is made ended", () => {
  const [own, parent] = [new LateSignal(), new AbortController()];
  const child = new LateSignal(parent.signal);
  own.removeEventListener("abort", () => undefined);
  own.abort();
  parent.abort();
  expect([LateSignal.real(own).aborted, LateSignal.real(child).aborted]).toEqual([true, true]);
  expect(LateSignal.real(parent.signal)).toBe(parent.signal);
});
