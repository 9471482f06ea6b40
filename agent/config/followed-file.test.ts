import { chmodSync, mkdirSync, renameSync, rmdirSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLogger } from "../../shared/log.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { FollowedFile } from "./followed-file.ts";

const intervalMs = 20;

/** Follows a file whose text is in order when it ends with a full stop. */
function follow(path: string) {
  const log: string[] = [];
  const values: string[] = [];
  const file = new FollowedFile<string>({
    path,
    what: "sentences",
    maxBytes: 100,
    read: (text) =>
      text.endsWith(".") ? { t: "ok", value: text } : { t: "wrong", problems: [`${path}:1:1: "${text}" has no end`] },
    logger: createLogger("info", (line) => void log.push(line)),
    intervalMs,
  });
  file.subscribe((value) => void values.push(value));
  return { file, log, values };
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 10_000; !holds(); ) {
    if (performance.now() > end) throw new Error("It has not come within 10 s");
    await Bun.sleep(5);
  }
}

test("tells each state of a file once, also of one that is replaced or that a link leads to", async () => {
  using directory = scratchDir();
  const path = join(directory.path, "a");
  writeFileSync(path, "One.");
  const { file, log, values } = follow(path);
  await using _ = file;
  await until(() => values.length === 1);
  writeFileSync(path, "Two.");
  await until(() => values.length === 2);
  writeFileSync(`${path}.new`, "Three.");
  renameSync(`${path}.new`, path);
  await until(() => values.length === 3);
  writeFileSync(`${path}.far`, "Four.");
  unlinkSync(path);
  symlinkSync(`${path}.far`, path);
  await until(() => values.length === 4);
  await Bun.sleep(5 * intervalMs);
  expect(values).toEqual(["One.", "Two.", "Three.", "Four."]);
  expect(log.filter((line) => !line.includes("ENOENT"))).toEqual([]);
});

test("takes nothing that others could have written, and takes it once they cannot any more", async ({ skip }) => {
  skip(process.geteuid?.() !== 0, "it is not run as root");
  using directory = scratchDir();
  const path = join(directory.path, "a");
  writeFileSync(path, "One.");
  const { file, log, values } = follow(path);
  await using _ = file;
  await until(() => values.length === 1);
  for (const [place, mode, text] of [
    [path, 0o644, "Two."],
    [directory.path, 0o700, "Three."],
  ] as const) {
    chmodSync(place, 0o777);
    writeFileSync(path, text);
    await until(() => log.some((line) => line.includes(`\\"${place}\\" can be written by others`)));
    await Bun.sleep(5 * intervalMs);
    expect(values).not.toContain(text);
    chmodSync(place, mode);
    await until(() => values.includes(text));
  }
});

test("keeps the last good value where the file is wrong, too long, no file or gone, and says each once", async () => {
  using directory = scratchDir();
  const path = join(directory.path, "a");
  const { file, log, values } = follow(path);
  await using _ = file;
  await until(() => log.length === 1);
  expect(log[0]).toContain("cannot be read");
  expect(log[0]).toContain("there are none yet");
  writeFileSync(path, "Good.");
  await until(() => values.length === 1);
  writeFileSync(path, "Half");
  await until(() => log.length === 2);
  expect(log[1]).toContain(`Cannot take the sentences: ${path}:1:1: \\"Half\\" has no end`);
  expect(log[1]).toContain("those from before stay");
  writeFileSync(path, "x".repeat(101));
  await until(() => log.length === 3);
  expect(log[2]).toContain("has 101 bytes, wanted 100 at the most");
  unlinkSync(path);
  await until(() => log.length === 4);
  mkdirSync(path);
  await until(() => log.length === 5);
  expect(log[4]).toContain("is no file");
  await Bun.sleep(5 * intervalMs);
  expect([log.length, file.current]).toEqual([5, "Good."]);
  rmdirSync(path);
  writeFileSync(path, "Good again.");
  await until(() => values.length === 2);
});

test("waits until a file that is being written holds still", async () => {
  using directory = scratchDir();
  const path = join(directory.path, "a");
  writeFileSync(path, "First.");
  const { file, values } = follow(path);
  await using _ = file;
  await until(() => values.length === 1);
  // Every state on the way would be in order, and none of them is meant.
  for (let i = 1; i <= 15; i++) {
    writeFileSync(path, `${"On.".repeat(i)}`);
    await Bun.sleep(intervalMs / 4);
  }
  await until(() => values.at(-1) === "On.".repeat(15));
  expect(values.length).toBeLessThan(8);
});

test("ends, and follows no longer", async () => {
  using directory = scratchDir();
  const path = join(directory.path, "a");
  writeFileSync(path, "One.");
  const { file, values } = follow(path);
  await until(() => values.length === 1);
  await file[Symbol.asyncDispose]();
  writeFileSync(path, "Two.");
  await Bun.sleep(5 * intervalMs);
  expect(values).toEqual(["One."]);
});
