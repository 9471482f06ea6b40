import { beforeAll, expect, test } from "vitest";
import { compileExecutables, debianPlugins } from "../conformance/plugin.ts";
import { isInFront } from "../support/in-front.ts";
import { describeWith } from "../support/requires.ts";
import { type Call, describeCall } from "./differential/call.ts";
import { type Difference, firstDifference } from "./differential/compare.ts";
import { sequenceOf } from "./differential/sequence.ts";
import { shrink } from "./differential/shrink.ts";
import { hostLocal, pipetteInProcess, pipetteProcess, type Side } from "./differential/sides.ts";
import { pipetteIpam } from "./ipam-call.ts";

// Any number of sequences from any seed by hand:
// PIPETTE_DIFF_SEED=12345 PIPETTE_DIFF_SEQUENCES=20000 npx bun --bun vitest run test/ipam/differential.test.ts
const firstSeed = Number(process.env["PIPETTE_DIFF_SEED"] ?? 1);
// In this process there is nothing that the small program could stand in front of.
const sequences = Number(process.env["PIPETTE_DIFF_SEQUENCES"] ?? (isInFront ? 1 : 250));
/** As many as the machine has processors to run host-local on. */
const atOnce = navigator.hardwareConcurrency;

const peer = (): Side => hostLocal(`${debianPlugins}/host-local`);

async function differenceIn(calls: readonly Call[], own: () => Side | Promise<Side>): Promise<Difference | undefined> {
  using theirs = peer();
  using ours = await own();
  return await firstDifference(calls, theirs, ours);
}

/** What to say of a seed whose sequence shows a difference. */
async function report(seed: number, calls: readonly Call[], own: () => Side | Promise<Side>): Promise<string> {
  const short = await shrink(calls, async (fewer) => (await differenceIn(fewer, own)) !== undefined);
  const difference = await differenceIn(short, own);
  const answers = [difference?.theirs, difference?.ours].map((ended) => `status ${ended?.status}: ${ended?.stdout}`);
  return [
    `Seed ${seed}: ${difference?.why ?? "the difference does not come again"}`,
    ...short.map(describeCall),
    `host-local: ${answers[0]}`,
    `pipette-ipam: ${answers[1]}`,
  ].join("\n");
}

async function runSeeds(
  seeds: readonly number[],
  own: () => Side | Promise<Side>,
): Promise<{ calls: number; found: string[] }> {
  const waiting = [...seeds];
  const found: string[] = [];
  let calls = 0;
  const work = async (): Promise<void> => {
    for (let seed = waiting.shift(); seed !== undefined && found.length === 0; seed = waiting.shift()) {
      const sequence = sequenceOf(seed);
      calls += sequence.length;
      if ((await differenceIn(sequence, own)) !== undefined) found.push(await report(seed, sequence, own));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { calls, found };
}

describeWith("pipette-ipam beside Debian's host-local", ["cni-plugins"], () => {
  beforeAll(compileExecutables);

  test(`${sequences} random sequences from seed ${firstSeed} on`, { timeout: 60_000 + 1_000 * sequences }, async () => {
    const seeds = Array.from({ length: sequences }, (_, i) => firstSeed + i);
    const { calls, found } = await runSeeds(seeds, pipetteInProcess);
    expect(found.join("\n\n")).toBe("");
    expect(calls).toBeGreaterThan(sequences);
  });

  test("a few, each call a process of its own", { timeout: 120_000 }, async () => {
    const seeds = Array.from({ length: isInFront ? 50 : 10 }, (_, i) => 9_000_000 + i);
    expect((await runSeeds(seeds, () => pipetteProcess(pipetteIpam))).found.join("\n\n")).toBe("");
  });
});
