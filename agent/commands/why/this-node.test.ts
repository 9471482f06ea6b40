import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { saidInLog, thisNode } from "./this-node.ts";

test("of a log the warnings and errors, the last first, each once, and the sentence of an agent that could not begin", () => {
  const line = (level: string, message: string, more: object = {}): string =>
    JSON.stringify({ time: "2026-01-02T03:04:05.000Z", level, message, ...more });
  const log = [
    line("warn", "connections were ended to make room for others"),
    line("info", "served"),
    line("error", "the registry is lost", { error: "403" }),
    line("warn", "connections were ended to make room for others"),
    "Jan 02 systemd: something",
    "Cannot go on with the lease database",
    "{ half of a line",
    "",
  ].join("\n");
  expect(saidInLog(log).map(({ text, atMs }) => [text, atMs])).toEqual([
    ["Cannot go on with the lease database", undefined],
    ["connections were ended to make room for others", Date.parse("2026-01-02T03:04:05Z")],
    ["the registry is lost: 403", Date.parse("2026-01-02T03:04:05Z")],
  ]);
});

test("a log and a configuration of one's own, and why they cannot be read", async () => {
  using scratch = scratchDir();
  const directory = scratch.path;
  const log = join(directory, "agent.log");
  writeFileSync(log, `${"x".repeat(300_000)}\nCannot start the agent: "/data" is held by process 7\n`);
  const config = join(directory, "agent.yaml");
  writeFileSync(config, "networks: 7\n", { mode: 0o600 });
  const node = thisNode({ config, log });
  expect(await node.look("log")).toMatchObject([{ by: "log", text: expect.stringContaining("is held by process 7") }]);
  expect(await node.look("configuration")).toMatchObject([{ by: "agent", text: expect.stringContaining("networks") }]);
  await expect(node.look("doctor")).rejects.toThrow("networks");
  await expect(thisNode({ config, log: join(directory, "none") }).look("log")).rejects.toThrow("none");
  expect(await thisNode({ config: join(directory, "none") }).look("configuration")).toMatchObject([
    { text: expect.stringContaining("it is not there") },
  ]);
});
