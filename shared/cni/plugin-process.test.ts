import { openSync } from "node:fs";
import { expect, test } from "vitest";

// What a process says that fails: nobody can mend what ends with a status alone.

const face = new URL("plugin-process.ts", import.meta.url).pathname;

/** A process whose plugin is this, as in `async (io) => { … }`. */
function start(plugin: string, stdout: "pipe" | number = "pipe"): Bun.Subprocess<"ignore", "pipe", "pipe"> {
  const program = `const { runPluginProcess } = await import("${face}"); process.exit(await runPluginProcess(${plugin}));`;
  return Bun.spawn([process.execPath, "--eval", program], {
    stdin: "ignore",
    stdout: stdout as "pipe",
    stderr: "pipe",
  });
}

/** More than a pipe holds. */
const long = `"a".repeat(${1 << 20})`;
const lateFault = 'void Promise.reject(new Error("a late fault"));';

test("a fault that nobody waits for is the one error on stdout", async () => {
  const child = start(`async () => { ${lateFault} await Bun.sleep(60_000); return 0; }`);
  expect(JSON.parse(await child.stdout.text())).toMatchObject({
    code: 100,
    msg: expect.stringContaining("a late fault"),
  });
  expect([await child.exited, await child.stderr.text()]).toEqual([1, ""]);
});

test("a fault while the result is being written: all of that goes out, then the fault to stderr", async () => {
  const child = start(
    `async (io) => { const written = io.writeResult(${long}); ${lateFault} await written; await Bun.sleep(60_000); return 0; }`,
  );
  // The process meets its fault while this one reads nothing.
  await Bun.sleep(300);
  expect((await child.stdout.text()).length).toBe((1 << 20) + 1);
  expect([await child.exited, await child.stderr.text()]).toEqual([1, expect.stringContaining("a late fault")]);
});

test("a stdout that takes nothing: stderr says so", async () => {
  const child = start('async (io) => { await io.writeResult("{}"); return 0; }', openSync("/dev/full", "w"));
  expect([await child.exited, await child.stderr.text()]).toEqual([
    1,
    expect.stringContaining("Cannot write the result to standard output: "),
  ]);
});
