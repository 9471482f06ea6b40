import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { errorOf, scratch, variables } from "./plugin.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

// The executable has no switch to break it, so here its sources run with something of Bun broken before the start.
// Without the JIT there are no calls of C, and the plugin goes by Bun's own reader and sockets, which can be broken so.
const sabotages = {
  "a throw where nobody waits": `Bun.stdin.stream = () => {
    setTimeout(() => { throw new Error("boom") }, 1);
    return new ReadableStream({});
  };`,
  "a rejection where nobody waits": `Bun.stdin.stream = () => {
    setTimeout(() => Promise.reject(new Error("boom")), 1);
    return new ReadableStream({});
  };`,
  "two faults at once": `Bun.stdin.stream = () => {
    setTimeout(() => { for (const text of ["boom", "boom again"]) Promise.reject(new Error(text)) }, 1);
    return new ReadableStream({});
  };`,
  "a throw in the middle of a verb": `Bun.connect = () => { throw new TypeError("boom") };`,
  "a throw of something that is no error": `Bun.connect = () => { throw "boom" };`,
};

test.each(Object.entries(sabotages))("section 5 Error: %s is one error object and a failure", (_, sabotage) => {
  using directory = scratch();
  const preload = `${directory.path}/preload.ts`;
  writeFileSync(preload, sabotage);
  const command = ["--preload", preload, join(root, "main.ts")];
  const input = JSON.stringify({ cniVersion: "1.1.0", name: "n", socket: `${directory.path}/none.sock` });
  const env = { PATH: "/usr/bin:/bin", BUN_JSC_useJIT: "0", ...variables("ADD") };
  const ended = spawnSync(process.execPath, command, { env, input, encoding: "utf8", timeout: 20_000 });
  const error = errorOf({ status: ended.status, stdout: ended.stdout, stderr: ended.stderr, ms: 0 });
  expect(error.msg).toContain("boom");
});
