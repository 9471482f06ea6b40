import { closeSync, openSync } from "node:fs";
import { expect, test } from "vitest";
import { runProgram } from "./run-program.ts";

const deadlineMs = 20_000;

test("answers what a program said, and with which status it ended", async () => {
  const done = await runProgram("sh", ["-c", "cat; echo oh >&2; exit 3"], { input: "in", deadlineMs });
  expect(done).toEqual({ stdout: "in", stderr: "oh\n", failure: "its exit status was 3", status: 3, isAbsent: false });
  expect(await runProgram("sh", ["-c", "pwd; echo $X"], { env: { X: "y" }, deadlineMs })).toMatchObject({
    stdout: "/\ny\n",
    failure: "",
    status: 0,
  });
});

test("kills one that lasts too long, without waiting for those whom it has started", async () => {
  const since = performance.now();
  const done = await runProgram("sh", ["-c", "sleep 30 & echo $!; sleep 30"], { deadlineMs: 200 });
  process.kill(Number(done.stdout));
  expect(done).toMatchObject({ failure: "it had not ended after 200 ms and was killed" });
  expect(performance.now() - since).toBeLessThan(20_000);
});

test("kills one that says too much", async () => {
  const done = await runProgram("yes", [], { deadlineMs, maxBytes: 1000 });
  expect(done.failure).toBe("it said more than 1000 bytes and was killed");
  expect(done.stdout.length).toBeLessThanOrEqual(1000);
});

test("names a signal that ended it", async () => {
  expect((await runProgram("sh", ["-c", "kill -TERM $$"], { deadlineMs })).failure).toBe("SIGTERM ended it");
});

test("says why a program could not be started", async () => {
  expect(await runProgram("pt-no-such-program", [], { deadlineMs })).toMatchObject({
    failure: '"pt-no-such-program" is not installed',
    isAbsent: true,
  });
  const refused = { isAbsent: false, stdout: "" };
  expect(await runProgram("/etc/passwd", [], { deadlineMs })).toEqual(
    expect.objectContaining({ ...refused, failure: "the system could not start its process (EACCES)" }),
  );
  expect(await runProgram("true", ["x".repeat(3_000_000)], { deadlineMs })).toMatchObject({
    failure: "the system could not start its process (E2BIG)",
  });
});

const scarce = `
const { openSync, closeSync } = require("node:fs");
const { runProgram } = await import(process.argv[1]);
const open = [];
try { for (;;) open.push(openSync("/dev/null", "r")); } catch {}
const none = await runProgram("true", [], { deadlineMs: 5000 });
const later = runProgram("true", [], { deadlineMs: 5000 });
for (const fd of open) closeSync(fd);
console.log(none.failure + "|" + (await later).failure);
`;

test("where the process may open no more files it says so, and tries again; it ends nobody", async () => {
  const module = new URL("./run-program.ts", import.meta.url).pathname;
  const words = ["-c", `ulimit -n 64; exec "$0" -e "$1" "$2"`, process.execPath, scarce, module];
  const done = await runProgram("sh", words, { deadlineMs });
  expect(done.stderr).toBe("");
  expect(done.stdout).toBe("the system could not start its process (EMFILE)|\n");
});

test("leaves no descriptor open", async () => {
  const next = (): number => {
    const fd = openSync("/dev/null", "r");
    closeSync(fd);
    return fd;
  };
  for (let i = 0; i < 5; i++) await runProgram("true", [], { input: "x", deadlineMs });
  const before = next();
  for (let i = 0; i < 50; i++) await runProgram("true", [], { input: "x".repeat(i * 10_000), deadlineMs });
  await Bun.sleep(50);
  expect(next()).toBeLessThan(before + 10);
});
