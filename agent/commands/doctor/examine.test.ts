import { expect, test } from "vitest";
import { lasting } from "./examine.ts";
import type { Finding } from "./finding.ts";

const finding = (code: string): Finding => ({ severity: "error", code, what: code, why: "", todo: "", evidence: "1" });

/** What is reported of looks that each have these codes, the last of them for ever; and how many were taken. */
async function reported(
  wanted: number,
  ...looks: readonly (readonly string[])[]
): Promise<readonly [string[], number]> {
  let taken = 0;
  const look = async () => ({ findings: (looks[Math.min(taken++, looks.length - 1)] ?? []).map(finding) });
  const { findings } = await lasting({ look, wanted: () => wanted, pause: async () => undefined });
  return [findings.map(({ code }) => code), taken];
}

test("what every look has is reported, and what only some have is not", async () => {
  expect(await reported(3, ["a", "b"], ["a"], ["a", "c"], ["a"])).toEqual([["a"], 4]);
  expect(await reported(3, ["a"])).toEqual([["a"], 3]);
});

test("where the first look has nothing there is no second one", async () => {
  expect(await reported(3, [])).toEqual([[], 1]);
  expect(await reported(3, ["a"], [])).toEqual([[], 2]);
});

test("what the first looks could not see, or saw under another code, is reported all the same", async () => {
  expect(await reported(3, ["leases-unreadable"], ["a"])).toEqual([["a"], 4]);
  expect(await reported(3, ["under-way"], ["under-way"], ["a"])).toEqual([["a"], 5]);
});

test("what is another one at each look is looked at no longer than it could last", async () => {
  const all = Array.from({ length: 20 }, (_, i) => [`call ${i}`]);
  const [findings, taken] = await reported(8, ...all);
  expect([findings, taken]).toEqual([[], 4]);
});

test("a single look reports all that it has", async () => {
  expect(await reported(1, ["a"], ["b"])).toEqual([["a"], 1]);
});
