import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";
import { corpusDirectory, nameOf, readCorpus } from "./engine/corpus.ts";
import { type Defect, Fuzzer } from "./engine/fuzzer.ts";
import { targets } from "./targets/all.ts";

/** Inputs of all targets together, beyond the corpus; `npm run fuzz` has more, and goes by what they reach. */
const inputs = Number(process.env["PIPETTE_FUZZ_INPUTS"] ?? 12_000);
const shares = targets.reduce((sum, { share }) => sum + share, 0);

describe.each(targets)("$name", ({ share, load }) => {
  test(`takes the corpus, and new inputs from seed ${seed}`, { timeout: 120_000 }, async () => {
    const target = await load();
    const found: Defect[] = [];
    const opened = await target.open();
    let last: Uint8Array = new Uint8Array(0);
    const fuzzer = new Fuzzer({
      target,
      opened,
      chance: random(seed),
      before: (bytes) => {
        last = bytes;
      },
      onDefect: (defect) => found.push(defect),
    });
    try {
      for (const { bytes } of readCorpus(target.name)) await fuzzer.seed(bytes);
      for (let i = 0; i < (inputs * share) / shares; i++) await fuzzer.step();
    } catch (cause) {
      throw new Error(`The fuzzer itself fails at ${Buffer.from(last).toString("base64")}`, { cause });
    } finally {
      await opened.close?.();
    }
    const told = found.map(({ bytes, why }) => `${why}\nfor base64 ${Buffer.from(bytes).toString("base64")}`);
    expect(told).toEqual([]);
  });
});

test("the corpora are those of the targets, each with a seed, and small enough to be looked at", () => {
  const root = corpusDirectory("");
  expect(readdirSync(root).sort()).toEqual(targets.map(({ name }) => name).sort());
  const files = targets.flatMap(({ name }) => readCorpus(name).map((kept) => ({ name, ...kept })));
  for (const { name } of targets)
    expect(
      files.some((kept) => kept.name === name && !/^[0-9a-f]{16}$/.test(kept.file)),
      name,
    ).toBe(true);
  // What the engine has found is called by its content, so that it is there once.
  const strange = files.filter(({ file, bytes }) => /^[0-9a-f]{16}$/.test(file) && file !== nameOf(bytes));
  expect(strange.map(({ name, file }) => join(name, file))).toEqual([]);
  const bytes = files.reduce((sum, { name, file }) => sum + statSync(join(root, name, file)).size, 0);
  expect([files.length < 270, bytes < 1024 * 1024]).toEqual([true, true]);
});
