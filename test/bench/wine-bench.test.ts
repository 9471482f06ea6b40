import { expect, inject, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { Launcher } from "./launch/launcher.ts";
import { measureWine } from "./measures/wine.ts";

describeWith("the benchmark under Wine in miniature", ["wine", "mingw", "musl"], () => {
  test("VERSION is answered, and compared with a program that does nothing", async () => {
    using scratch = scratchDir();
    const launcher = await Launcher.compile(scratch.path);
    const setting = { scratch: scratch.path, launcher, rounds: 1, progress: () => undefined };
    const rows = await measureWine(setting, inject("wineDirectory"));
    expect(rows.map(({ measure, cache }) => [measure, cache])).toEqual([
      ["VERSION under Wine", "read"],
      ["VERSION under Wine", "faulted"],
    ]);
    for (const row of rows) expect(row.value).toBeGreaterThan(0);
  });
});
