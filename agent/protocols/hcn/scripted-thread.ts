import type { CallMarks } from "./call-marks.ts";
import { serveCalls } from "./call-server.ts";
import { NativeInMemory } from "./native-in-memory.ts";

/**
 * For unit tests only: first file of a thread with a library in memory, which V1's paths steer. `/block/<ms>` blocks as a
 * native call does, `/die` and `/throw` end the thread and the call, `/handles` answers how many objects are open and
 * `/calls` how often functions were called; `/block-next/<ms>/<function>` blocks the next call of that function.
 */
serveCalls((marks: CallMarks) => {
  const native = new NativeInMemory();
  const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  let next: { readonly call: string; readonly ms: number } | undefined;
  native.before = (call) =>
    marks.within(call, () => {
      if (next?.call !== call) return;
      const { ms } = next;
      next = undefined;
      block(ms);
    });
  native.onHnsCall = (method, path) => {
    const [, order, number, call] = path.split("/");
    if (order === "block") marks.within("HNSCall", () => block(Number(number)));
    if (order === "block-next") next = { call: call ?? "", ms: Number(number) };
    if (order === "die") process.exit(3);
    if (order === "throw") throw new Error("Thrown on request");
    const counts: Record<string, number> = { handles: native.handles.size, calls: native.calls.length };
    return JSON.stringify({ Success: true, Output: counts[order ?? ""] ?? method });
  };
  return native;
});
