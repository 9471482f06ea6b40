import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { maxDelegateLogBytes } from "../../cni/delegate.ts";
import { maxStdinBytes } from "../../shared/cni/dispatch.ts";
import { nodeService } from "../../shared/proto/services.ts";
import {
  compileExecutables,
  errorOf,
  executables,
  kill,
  resultOf,
  run,
  scratch,
  start,
  variables,
} from "../conformance/plugin.ts";
import { AgentHome, type AgentProcess } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";

/** 100,000 in a long run: PIPETTE_STATUS=100000. */
const statusCalls = Number(process.env["PIPETTE_STATUS"] ?? 500);

describeWith("a runtime that asks for too much", ["root", "linux"], () => {
  let home: AgentHome;
  let agent: AgentProcess;
  let pod: NetworkNamespace;

  beforeAll(async () => {
    compileExecutables();
    home = new AgentHome({}, executables, ["unshare", "--net"]);
    agent = await home.start();
    pod = NetworkNamespace.create();
  });
  afterAll(async () => {
    pod[Symbol.dispose]();
    expect(await agent.end()).toBe(0);
    await home[Symbol.asyncDispose]();
  });

  const conf = (more: object = {}) => ({
    cniVersion: "1.1.0",
    name: "pods",
    type: "pipette",
    socket: home.socket,
    dataDir: home.dataDir,
    ...more,
  });
  const call = (verb: string, more: object = {}, env: object = {}) =>
    run({ env: variables(verb, { CNI_NETNS: pod.path, ...env }), stdin: conf(more) });
  /** So many characters that the whole is just as long as it may be. */
  const padding = (more: object, over = 0): string =>
    "x".repeat(maxStdinBytes - JSON.stringify(conf({ ...more, padding: "" })).length + over);

  test("configurations as long as they may be work in every verb, and one byte more is refused", async () => {
    const gc = { "cni.dev/valid-attachments": [] };
    const { ips } = resultOf(await call("ADD", { padding: padding({}) }));
    const result = { prevResult: { cniVersion: "1.1.0", ips } };
    expect(errorOf(await call("ADD", { padding: padding({}, 1) }))).toMatchObject({ code: 6 });
    for (const [verb, more] of [
      ["STATUS", {}],
      ["GC", gc],
      ["DEL", result],
    ] as const)
      resultOf(await call(verb, { ...more, padding: padding(more) }));
    expect((await home.status()).problems).toEqual([]);
  });

  const many = (count: number, one: (i: number) => unknown): unknown[] =>
    Array.from({ length: count }, (_, i) => one(i));
  const subnet = "10.78.0.0/16";
  test.each<readonly [string, object]>([
    ["100,000 range sets", { ipam: { type: "pipette-ipam", ranges: many(100_000, () => []) } }],
    ["20,000 ranges", { ipam: { type: "pipette-ipam", ranges: [many(20_000, () => ({ subnet }))] } }],
    [
      "20,000 excluded addresses",
      {
        ipam: {
          type: "pipette-ipam",
          ranges: [[{ subnet, exclude: many(20_000, (i) => `10.78.${i >> 8}.${i & 255}`) }]],
        },
      },
    ],
    [
      "20,000 routes",
      {
        ipam: {
          type: "pipette-ipam",
          ranges: [[{ subnet }]],
          routes: many(20_000, (i) => ({ dst: `10.${i >> 8}.${i & 255}.0/24` })),
        },
      },
    ],
    ["60,000 requested addresses", { args: { cni: { ips: many(60_000, () => "10.78.0.9") } } }],
  ])("%s: an answer, and the agent serves the next call as ever", async (_, more) => {
    const ended = await call("ADD", more, { CNI_CONTAINERID: "many" });
    if (ended.status !== 0) expect(errorOf(ended).code).not.toBe(100);
    expect(ended.stdout.length).toBeLessThan(2 * maxStdinBytes);
    resultOf(await call("DEL", {}, { CNI_CONTAINERID: "many" }));
    resultOf(await call("STATUS"));
  });

  test.each(["ADD", "STATUS", "DEL"])(
    "%s with lists in lists, 200,000 deep, where the log wants them: refused in words",
    async (verb) => {
      const text = JSON.stringify(conf({ logLevel: "debug", routes: 0 }));
      const stdin = text.replace('"routes":0', `"routes":${"[".repeat(200_000)}${"]".repeat(200_000)}`);
      const env = variables(verb, { CNI_NETNS: pod.path, CNI_CONTAINERID: "deep" });
      const ended = await run({ env, stdin });
      expect(errorOf(ended)).toMatchObject({ code: 6, msg: expect.stringContaining("nested more than 256 deep") });
    },
  );

  test(`${statusCalls} STATUS calls leave nothing behind`, async () => {
    const ask = () => home.call(nodeService.status, { network: "pods" });
    const some = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i += 50) await Promise.all(Array.from({ length: 50 }, ask));
    };
    await some(250);
    const before = agent.residentMb();
    await some(statusCalls);
    const { callsInFlight, departing, problems } = await home.status();
    expect({ callsInFlight, departing, problems }).toEqual({ callsInFlight: 0, departing: 0, problems: [] });
    await expect.poll(() => agent.residentMb()).toBeLessThan(before + 96);
  });

  test("standard input that never ends is read no further than it may be; one that stalls waits for its runtime, and nothing was begun", async () => {
    const env = variables("ADD", { CNI_NETNS: pod.path, CNI_CONTAINERID: "endless" });
    const endless = await run({ env, redirect: "</dev/zero" });
    expect(errorOf(endless)).toMatchObject({ code: 6, msg: expect.stringContaining("longer than") });
    using directory = scratch();
    const fifo = join(directory.path, "stdin");
    Bun.spawnSync(["mkfifo", fifo]);
    const stalled = start({ env, redirect: `<>${fifo}` });
    await Bun.sleep(200);
    kill(stalled);
    await stalled.ended;
    expect(await home.containers()).not.toContain("endless");
  });

  const delegates: Readonly<Record<string, string>> = {
    "floods its standard output": "exec cat /dev/zero",
    "floods its standard error": "exec cat /dev/zero >&2",
    "leaves a child behind that keeps its output open": "sleep 60 & echo $! >> child; echo '{}'; exit 0",
    "never reads nor ends": "exec sleep 60",
  };
  test(`a delegate that ${Object.keys(delegates).join(", or ")} is met by the deadline, and little is said of it`, async () => {
    using directory = scratch();
    const met = Object.entries(delegates).map(async ([what, script], i) => {
      const bin = join(directory.path, `bin${i}`);
      mkdirSync(bin);
      writeFileSync(join(bin, "mad"), `#!/bin/sh\ncd ${bin}\n${script}\n`);
      chmodSync(join(bin, "mad"), 0o755);
      const more = { ipam: { type: "mad" }, addTimeoutMs: 700, delTimeoutMs: 300 };
      const ended = await call("ADD", more, { CNI_PATH: bin, CNI_CONTAINERID: `mad${i}` });
      const wanted = { code: 11, msg: expect.stringContaining("it has not ended after 700 ms") };
      expect(errorOf(ended), what).toMatchObject(wanted);
      expect(ended.stdout.length + ended.stderr.length, what).toBeLessThan(10 * maxDelegateLogBytes);
      // Of its ADD, and of the DEL that undoes it.
      const left = existsSync(join(bin, "child")) ? readFileSync(join(bin, "child"), "utf8").trim().split("\n") : [];
      for (const pid of left) process.kill(Number(pid), "SIGKILL");
    });
    await Promise.all(met);
  });
});
