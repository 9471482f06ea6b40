import { expect, test } from "vitest";
import { type CallRecord, CallRing } from "./call-record.ts";

type Given = Omit<CallRecord, "times" | "firstAtMs">;

const call = (changes: Partial<Given>): Given => ({
  ...{ verb: "ADD", network: "pods", sandbox: "s", ifname: "eth0", beganAtMs: 1, durationMs: 2, code: 0, message: "" },
  phases: [{ phase: "ipam", ms: 1 }],
  ...changes,
});
const failure = (name: string, changes: Partial<Given> = {}): Given =>
  call({ code: 101, message: "no address is free", failedIn: "ipam", pod: { namespace: "shop", name }, ...changes });

test("a failed ADD is found after any number of calls that succeed", () => {
  const ring = new CallRing();
  ring.add(failure("cart"));
  for (let i = 0; i < 5_000; i++) ring.add(call({ sandbox: `s${i}`, beganAtMs: 10 + i }));
  const kept = ring.list();
  expect(kept.filter(({ code }) => code !== 0)).toMatchObject([{ pod: { name: "cart" }, failedIn: "ipam", times: 1 }]);
  expect(kept.length).toBe(257);
  // The last of them, and first in the list.
  expect(kept[0]?.sandbox).toBe("s4999");
});

test("a pod that fails again and again is one record, whatever its sandbox is, and pushes out no other pod", () => {
  const ring = new CallRing();
  ring.add(failure("cart", { beganAtMs: 5 }));
  for (let i = 0; i < 3_000; i++) ring.add(failure("till", { sandbox: `s${i}`, beganAtMs: 10 + i }));
  ring.add(failure("till", { code: 11, beganAtMs: 9_000 }));
  expect(
    ring.list().map(({ pod, code, times, firstAtMs, sandbox }) => [pod?.name, code, times, firstAtMs, sandbox]),
  ).toEqual([
    ["till", 11, 1, 9_000, "s"],
    ["till", 101, 3_000, 10, "s2999"],
    ["cart", 101, 1, 5, "s"],
  ]);
});

test("verbs, and pods whose failures differ, are bounded each for itself", () => {
  const ring = new CallRing();
  ring.add(call({ verb: "DEL" }));
  for (let i = 0; i < 300; i++) ring.add(failure(`p${i}`, { beganAtMs: i }));
  const kept = ring.list();
  expect(kept.filter(({ verb }) => verb === "DEL")).toHaveLength(1);
  expect(kept.filter(({ verb }) => verb === "ADD").map(({ pod }) => pod?.name)).toEqual(
    Array.from({ length: 256 }, (_, i) => `p${299 - i}`),
  );
});

test("texts of callers are cut, so that the bound in number is one in bytes", () => {
  const ring = new CallRing();
  const long = "x".repeat(100_000);
  ring.add(failure(long, { sandbox: long, ifname: long, network: long, message: long }));
  expect(JSON.stringify(ring.list()).length).toBeLessThan(3_000);
  expect(ring.list()[0]?.message.endsWith("…")).toBe(true);
});
