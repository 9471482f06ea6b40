import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { smallSample, writeSample } from "../../../test/fakes/sample-executable.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { type Places, planExecutables, planRemoval } from "./executables.ts";
import type { Step } from "./plan.ts";

const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const digestAt = (path: string): string => digest(readFileSync(path));

/** What a run wants to have: a release that carries a small program in front or whole, one that carries none, nothing. */
const wishes = ["none carried", "first in front", "second in front", "second whole"] as const;
type Wish = (typeof wishes)[number];

test("whatever was there, whichever steps were done, and whatever comes then: at no time a small program without its whole one", async () => {
  using scratch = scratchDir();
  const at = (name: string): string => join(scratch.path, name);
  const [bin, libexec] = [at("bin"), at("libexec")];
  const [main = "", ipam = "", whole = ""] = [
    join(bin, "pipette"),
    join(bin, "pipette-ipam"),
    join(libexec, "pipette"),
  ];
  const release: Readonly<Record<Wish, string>> = {
    "none carried": at("none"),
    "first in front": at("first"),
    "second in front": at("second"),
    "second whole": at("second"),
  };
  const smallOf = { first: smallSample("first"), second: smallSample("second") };
  writeSample(at("none"), "none", { mebibytes: 0 });
  for (const name of ["first", "second"] as const)
    writeSample(at(name), name, { mebibytes: 0, carried: smallOf[name] });
  const wholes = ["none", "first", "second"].map((name) => digestAt(at(name)));
  const smalls = Object.values(smallOf).map(digest);
  const carriers = [at("first"), at("second")].map(digestAt);

  const planned = async (wish: Wish): Promise<readonly Step[]> => {
    const places: Places = wish === "second whole" ? { bin } : { bin, libexec };
    return (await planExecutables(release[wish], places)).steps;
  };
  const expectUsable = (said: string): void => {
    for (const path of [main, ipam].filter((name) => existsSync(name))) {
      const found = digestAt(path);
      if (wholes.includes(found)) continue;
      expect(smalls, `${said}: ${path}`).toContain(found);
      expect(carriers, `${said}: the whole one`).toContain(existsSync(whole) ? digestAt(whole) : "nothing");
    }
  };
  const carryOut = async (steps: readonly Step[], said: string): Promise<void> => {
    for (const [i, step] of steps.entries()) {
      await step.run?.();
      expectUsable(`${said}, step ${i + 1}`);
    }
  };

  for (const before of ["none carried", "first in front"] as const)
    for (const broken of wishes)
      for (const done of [1, 2])
        for (const then of ["none carried", "second in front", "removal"] as const) {
          for (const directory of [bin, libexec]) rmSync(directory, { recursive: true, force: true });
          mkdirSync(bin);
          await carryOut(await planned(before), before);
          const said = `${before}, ${done} steps of ${broken}, ${then}`;
          const steps = (await planned(broken)).filter(({ run }) => run !== undefined);
          await carryOut(steps.slice(0, done), said);
          await carryOut(then === "removal" ? await planRemoval({ bin, libexec }) : await planned(then), said);
          const left = [main, ipam].filter((name) => existsSync(name));
          expect(left, said).toEqual(then === "removal" ? [] : [main, ipam]);
          if (then !== "removal") expect((await planned(then)).every(({ action }) => action === "keep")).toBe(true);
        }
});

test("what an executable carries is read wherever it lies, and half of it is nothing", async () => {
  using scratch = scratchDir();
  const [path, places] = [join(scratch.path, "program"), { bin: scratch.path, libexec: join(scratch.path, "l") }];
  const carried = smallSample("any");
  for (const mebibytes of [0, 3]) {
    writeSample(path, "x", { mebibytes, carried });
    const { steps, whole } = await planExecutables(path, places);
    expect(whole).toBe(join(places.libexec, "pipette"));
    expect(steps.find(({ target }) => target.endsWith("pipette-ipam"))?.detail).toContain(digest(carried).slice(0, 12));
  }
  const text = readFileSync(path);
  await Bun.write(path, text.subarray(0, text.length - 10));
  expect((await planExecutables(path, places)).whole).toBe(join(scratch.path, "pipette"));
});
