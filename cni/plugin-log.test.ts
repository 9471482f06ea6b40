import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { PluginNode, podResult, refused, result } from "../test/fakes/plugin-node.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

// biome-ignore lint/suspicious/noExplicitAny: a line of the log, whose fields the test looks at
const read = (lines: readonly string[]): any[] => lines.map((line) => JSON.parse(line));

describe("the log of a call", () => {
  test("is silent on stderr but for errors", async () => {
    using node = new PluginNode(() => result(podResult));
    expect((await node.call("ADD")).log).toEqual([]);
    node.serve(() => refused(101, "full"));
    const [line, ...more] = read((await node.call("ADD")).log);
    expect(line).toMatchObject({
      level: "error",
      message: "full",
      code: 101,
      verb: "ADD",
      network: "n",
      containerId: "c1",
    });
    expect([line.ms >= 0, line.ms < 60_000, more]).toEqual([true, true, []]);
  });

  test("says with debug what it was called with, without what may be secret, and what it is about", async () => {
    using node = new PluginNode(() => result(podResult));
    const conf = { logLevel: "Debug", token: "t0p" };
    const lines = read((await node.call("ADD", conf, { CNI_ARGS: "K8S_POD_NAME=web;KEY=t0p" })).log);
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ["debug", "Called"],
      ["debug", "The agent answered"],
      ["info", "Done"],
    ]);
    expect(lines[0]).toMatchObject({ ifname: "eth0", netns: "/run/netns/a", pid: process.pid });
    expect(JSON.stringify(lines)).not.toContain("t0p");
    expect(lines[1].ms).toBeLessThan(60_000);
  });

  test("of a call about no sandbox names none", async () => {
    using node = new PluginNode(() => ({ problems: [] }));
    const env = { CNI_CONTAINERID: "" };
    const [line] = read((await node.call("STATUS", { logLevel: "info" }, env)).log);
    expect([line.verb, "containerId" in line]).toEqual(["STATUS", false]);
  });

  test("goes to a file from info on, errors to stderr as well, and says where it cannot", async () => {
    using node = new PluginNode(() => result(podResult));
    const logFile = `${node.dataDir}.log`;
    expect((await node.call("ADD", { logFile })).log).toEqual([]);
    node.serve(() => refused(101, "full"));
    expect(read((await node.call("ADD", { logFile })).log)).toMatchObject([{ message: "full", containerId: "c1" }]);
    const kept = read(readFileSync(logFile, "utf8").trim().split("\n"));
    expect(kept.map(({ level, message, verb }) => [level, message, verb])).toEqual([
      ["info", "Done", "ADD"],
      ["error", "full", "ADD"],
    ]);
    const { log } = await node.call("ADD", { logFile: `${node.dataDir}/none/a.log` });
    expect(log[0]).toContain("Cannot write the log");
  });

  test("that is configured wrongly stops no DEL", async () => {
    using node = new PluginNode();
    const { status, log } = await node.call("DEL", { logLevel: "loud", logFile: "/etc/cron.d/x", socket: "relative" });
    expect([status, log]).toEqual([0, []]);
    const warned = await node.call("DEL", { logLevel: "warn", socket: "relative" });
    expect(read(warned.log)).toMatchObject([{ level: "warn", message: expect.stringContaining("socket") }]);
    expect((await node.call("ADD", { logFile: "" })).out.code).toBe(7);
  });
});
