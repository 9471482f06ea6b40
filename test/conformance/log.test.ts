import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { maxLogFileBytes } from "../../shared/os/log-file.ts";
import { compileExecutables, errorOf, resultOf, run, scratch, variables } from "./plugin.ts";
import { refusing, startScriptedAgent } from "./scripted-agent.ts";

beforeAll(compileExecutables);

const confOf = (socket: string, more: object) => ({ cniVersion: "1.1.0", name: "n", type: "pipette", socket, ...more });

const linesOf = (file: string): Record<string, unknown>[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("by default only errors are logged, as JSON lines on stderr", async () => {
  await using agent = await startScriptedAgent();
  const stdin = confOf(agent.socket, {});
  expect((await run({ env: variables("ADD"), stdin })).stderr).toBe("");
  agent.follow(refusing(102, "no bridge"));
  const ended = await run({ env: variables("ADD"), stdin });
  errorOf(ended);
  expect(JSON.parse(ended.stderr)).toMatchObject({ level: "error", message: "no bridge", code: 102, verb: "ADD" });
});

test("logFile takes JSON lines of every call, in a file for root alone", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const logFile = `${directory.path}/pipette.log`;
  const stdin = confOf(agent.socket, { logFile });
  resultOf(await run({ env: variables("ADD"), stdin }));
  agent.follow(refusing(102, "no bridge"));
  const failed = await run({ env: variables("ADD"), stdin });
  expect(linesOf(logFile)).toMatchObject([
    { level: "info", message: "Done", verb: "ADD", network: "n", containerId: "c1", ms: expect.any(Number) },
    { level: "error", message: "no bridge", code: 102 },
  ]);
  expect(failed.stderr).toContain("no bridge");
  expect(statSync(logFile).mode & 0o777).toBe(0o600);
});

test("peers 5.18: logLevel debug shows configuration and CNI_ARGS without secrets", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const logFile = `${directory.path}/pipette.log`;
  const stdin = confOf(agent.socket, {
    logFile,
    logLevel: "debug",
    password: "s3cret",
    dns: { domain: "d", key: "s3cret" },
  });
  const env = variables("ADD", { CNI_ARGS: "IgnoreUnknown=1;TOKEN=s3cret;K8S_POD_NAME=web" });
  resultOf(await run({ env, stdin }));
  const text = readFileSync(logFile, "utf8");
  expect(text).not.toContain("s3cret");
  expect(linesOf(logFile)[0]).toMatchObject({
    level: "debug",
    args: "IgnoreUnknown=1;TOKEN=…;K8S_POD_NAME=web",
    conf: { name: "n", password: "…", dns: { domain: "d", key: "…" } },
  });
});

test("a log that cannot be written is said on stderr and fails no verb", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const logFile = `${directory.path}/no/such/directory/x.log`;
  const ended = await run({ env: variables("ADD"), stdin: confOf(agent.socket, { logFile }) });
  resultOf(ended);
  expect(ended.stderr).toContain(logFile);
});

test("a log is not written through a link", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const logFile = `${directory.path}/x.log`;
  symlinkSync(`${directory.path}/elsewhere`, logFile);
  resultOf(await run({ env: variables("ADD"), stdin: confOf(agent.socket, { logFile }) }));
  expect(existsSync(`${directory.path}/elsewhere`)).toBe(false);
});

test("a full log is rotated once by many at a time, and nothing of it is lost", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const logFile = `${directory.path}/x.log`;
  const filler = `${JSON.stringify({ filler: "x".repeat(1000) })}\n`;
  const lines = Math.ceil(maxLogFileBytes / filler.length);
  writeFileSync(logFile, filler.repeat(lines));
  const stdin = confOf(agent.socket, { logFile });
  const count = 12;
  const calls = Array.from({ length: count }, (_, i) =>
    run({ env: variables("ADD", { CNI_CONTAINERID: `c${i}` }), stdin }).then(resultOf),
  );
  await Promise.all(calls);
  expect(readdirSync(directory.path).sort()).toEqual(["x.log", "x.log.1"]);
  const kept = linesOf(`${logFile}.1`);
  const since = linesOf(logFile);
  expect(kept.length + since.length).toBe(lines + count);
  expect(kept.length).toBeGreaterThan(lines);
});

test("peers 7: a lock that a killed process left behind does not stop rotation for ever", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const logFile = `${directory.path}/x.log`;
  writeFileSync(logFile, "x".repeat(maxLogFileBytes));
  writeFileSync(`${logFile}.lock`, "");
  utimesSync(`${logFile}.lock`, new Date(0), new Date(0));
  const stdin = confOf(agent.socket, { logFile });
  for (let i = 0; i < 2; i++) resultOf(await run({ env: variables("ADD"), stdin }));
  expect(readdirSync(directory.path).sort()).toEqual(["x.log.1"]);
});
