import { describe, expect, test } from "vitest";
import { EventCutter } from "./sse.ts";
import { changed } from "./store.ts";

describe("what the page has", () => {
  const entry = { version: 3, atMs: 1, document: { pods: [1, 2] } };
  const before = new Map([["a/pods", entry]]);

  test("a change of the version that it has goes in", () => {
    const steps = [{ do: "rows", key: "pods", at: 0, gone: 1, rows: [] } as const];
    const after = changed(before, [{ topic: "a/pods", version: 4, from: 3, atMs: 2, steps }]);
    expect(after?.get("a/pods")).toEqual({ version: 4, atMs: 2, document: { pods: [2] } });
    expect(before.get("a/pods")).toBe(entry);
  });

  test.each([
    ["of another version", "a/pods", 2],
    ["of what it does not have", "b/pods", 3],
  ])("a change %s does not", (_, topic, from) => {
    expect(changed(before, [{ topic, version: 9, from, atMs: 2, steps: [] }])).toBeUndefined();
  });

  test("a node that does not answer keeps what it has said, until it is gone", () => {
    const silent = changed(before, [{ topic: "a/pods", version: 4, fault: "it does not answer" }]);
    expect(silent?.get("a/pods")).toEqual({ ...entry, version: 4, fault: "it does not answer" });
    const back = changed(silent ?? before, [{ topic: "a/pods", version: 5, from: 4, atMs: 9, steps: [] }]);
    expect(back?.get("a/pods")).toEqual({ ...entry, version: 5, atMs: 9 });
    expect(changed(before, [{ topic: "a/pods", version: 0, gone: true }])?.size).toBe(0);
  });
});

test("events are found wherever the stream is cut", () => {
  const text = ': beat\n\nid: e.1\ndata: {"changes":[]}\n\nid: e.2\ndata: 2\n\n';
  const cutter = new EventCutter();
  expect([...text].flatMap((letter) => cutter.take(letter))).toEqual([
    { id: "e.1", data: '{"changes":[]}' },
    { id: "e.2", data: "2" },
  ]);
});
