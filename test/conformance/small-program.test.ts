import { copyFileSync, mkdirSync } from "node:fs";
import { connect as connectTo, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { compileSmallProgram } from "../../build/forward.ts";
import { Allocator } from "../../ipam/mod.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { type CniEnded, runPlugin } from "../support/cni-call.ts";
import { eventually } from "../support/eventually.ts";
import { compiledBuildId } from "../support/forward-client.ts";
import { describeWith } from "../support/requires.ts";
import { compileExecutables, errorOf, executables, resultOf, scratch, variables } from "./plugin.ts";
import { type RealAgent, startRealAgent } from "./real-agent.ts";

// The small program, a daemon and, where a test wants it, the whole program behind: all as they are delivered.

const nowhere = "/nonexistent/pipette";
const whole = join(executables, "pipette");
const directory = scratch();
afterAll(() => directory[Symbol.dispose]());

/** @returns the directory where it lies under both names */
async function small(name: string, socket: string, wholeProgram: string, buildId = compiledBuildId()): Promise<string> {
  const [bin, places] = [join(directory.path, name), { agentSocket: socket, ipamSocket: socket, wholeProgram }];
  mkdirSync(bin, { recursive: true });
  const outfile = join(bin, "pipette");
  await compileSmallProgram({ system: "linux", outfile, buildId: buildId.toHex(), places });
  copyFileSync(outfile, join(bin, "pipette-ipam"));
  return bin;
}

type Variables = Readonly<Record<string, string>>;

const call = (bin: string, verb: string, env: Variables, conf: unknown, name = "pipette"): Promise<CniEnded> =>
  runPlugin({ executable: join(bin, name), env: { ...variables(verb), ...env }, conf });

describeWith("the small program before the agent", ["linux", "root", "musl", "cni-plugins"], () => {
  let agent: RealAgent;
  let socket: string;
  let conf: Readonly<Record<string, unknown>>;
  let alone: string;
  let before: string;
  const undo: (() => void)[] = [];
  beforeAll(async () => {
    compileExecutables();
    agent = await startRealAgent();
    socket = agent.conf["socket"] as string;
    conf = { ...agent.conf, cniVersion: "1.1.0" };
    [alone, before] = await Promise.all([small("alone", socket, nowhere), small("before", socket, whole)]);
  });
  afterEach(() => {
    for (const step of undo.splice(0)) step();
  });
  afterAll(() => agent?.[Symbol.asyncDispose]());

  const pod = (id: string) => ({ CNI_CONTAINERID: id, CNI_NETNS: agent.addPod() });
  const leasesOf = async (sandboxId: string) => {
    using store = await Allocator.open(agent.dataDir);
    return store.find({ network: "n", sandboxId, ifname: "eth0" }).map(({ state }) => state);
  };

  test("every verb is the agent's, without any whole program", async () => {
    const env = pod("alone");
    const links = agent.links();
    const prevResult = resultOf(await call(alone, "ADD", env, conf));
    expect(prevResult).toMatchObject({ cniVersion: "1.1.0", ips: [{}, {}] });
    expect(resultOf(await call(alone, "ADD", env, conf))).toEqual(prevResult);
    expect(resultOf(await call(alone, "CHECK", env, { ...conf, prevResult }))).toEqual({});
    expect(errorOf(await call(alone, "CHECK", env, { ...conf, prevResult: { ...prevResult, ips: [] } })).code).toBe(
      103,
    );
    expect(resultOf(await call(alone, "STATUS", {}, conf))).toEqual({});
    expect(errorOf(await call(alone, "ADD", { CNI_NETNS: "/run/netns/pt-cf-none" }, conf)).code).not.toBe(5);
    expect(resultOf(await call(alone, "DEL", env, conf))).toEqual({});
    expect(resultOf(await call(alone, "DEL", env, conf))).toEqual({});
    expect(resultOf(await call(alone, "GC", {}, { ...conf, "cni.dev/valid-attachments": [] }))).toEqual({});
    expect([agent.links().length, await leasesOf("alone")]).toEqual([links.length, []]);
  });

  test("a crowd of pods comes and goes, each with an address of its own", async () => {
    // No more than get to the agent within the small program's second on a busy machine.
    const pods = Array.from({ length: 12 }, (_, i) => pod(`crowd-${i}`));
    const added = await Promise.all(pods.map((env) => call(alone, "ADD", env, conf)));
    const addresses = added.map((ended) => (resultOf(ended)["ips"] as { address: string }[])[0]?.address);
    expect(new Set(addresses).size).toBe(pods.length);
    for (const ended of await Promise.all(pods.map((env) => call(alone, "DEL", env, conf)))) resultOf(ended);
  });

  test.each<readonly [string, (base: object) => Promise<readonly [program: string, conf: object]>]>([
    ["another build", async (base) => [await small("other", socket, whole, new Uint8Array(16)), base]],
    ["a long configuration", async (base) => [before, { ...base, more: "x".repeat(100_000) }]],
    ["one that is too long for the agent to take", async (base) => [before, { ...base, more: "x".repeat(30_000) }]],
    ["a log file of its own", async (base) => [before, { ...base, logFile: join(directory.path, "a.log") }]],
  ])("%s is the whole program's, with the same outcome", async (what, prepare) => {
    const [program, given] = await prepare(conf);
    const env = pod(`whole ${what}`.replaceAll(" ", "-"));
    const added = resultOf(await call(program, "ADD", env, given));
    expect(resultOf(await call(alone, "ADD", env, conf))).toEqual(added);
    expect(resultOf(await call(program, "DEL", env, given))).toEqual({});
    expect(await leasesOf(env.CNI_CONTAINERID)).toEqual([]);
  });

  /** Between small program and agent: ends a forwarded call's connection as the test says. */
  async function cutting(end: (asked: number, answered: number) => boolean): Promise<string> {
    const place = join(directory.path, `cut-${performance.now()}.sock`);
    const server: Server = createServer({ allowHalfOpen: true }, (caller) => {
      const callee = connectTo(socket);
      let [asked, answered] = [0, 0];
      const relay = (from: Socket, to: Socket, count: (bytes: number) => void) => {
        from.on("data", (bytes: Buffer) => {
          for (const byte of bytes) {
            if (end(asked, answered)) {
              caller.destroy();
              // What has been asked for goes on: the agent reads it before it sees an end.
              callee.end();
              return;
            }
            to.write(Buffer.of(byte));
            count(1);
          }
        });
        from.on("error", () => undefined);
        from.on("close", () => to.end());
      };
      relay(caller, callee, (bytes) => (asked += bytes));
      relay(callee, caller, (bytes) => (answered += bytes));
    });
    await new Promise<void>((listening) => server.listen(place, listening));
    undo.push(() => server.close());
    return place;
  }

  test.each<readonly [string, (asked: number, answered: number) => boolean]>([
    ["in the middle of the request", (asked) => asked === 100],
    ["before the first byte of an answer", (_, answered) => answered === 0],
    ["in the word that it is taken", (_, answered) => answered === 10],
    ["behind the word that it is taken", (_, answered) => answered === 24],
    ["in the head of the result", (_, answered) => answered === 30],
    ["in the result", (_, answered) => answered === 60],
  ])("an ADD whose connection is cut %s is carried out once, and so is its DEL", async (where, end) => {
    let cuts = 0;
    const isFirst = (asked: number, answered: number): boolean => {
      // A byte of an answer comes when all has been asked.
      const isCut = end(asked, answered) && (asked === 100 || answered > 0 || asked > 400);
      if (isCut) cuts++;
      return isCut;
    };
    const program = await small("cut", await cutting(isFirst), whole);
    const env = pod(`cut-${where.replaceAll(" ", "-")}`);
    const links = agent.links().length;
    const added = resultOf(await call(program, "ADD", env, conf));
    expect(cuts).toBeGreaterThan(0);
    expect(resultOf(await call(alone, "ADD", env, conf))).toEqual(added);
    expect([agent.links().length, await leasesOf(env.CNI_CONTAINERID)]).toEqual([
      links + 1,
      ["allocated", "allocated"],
    ]);
    expect(resultOf(await call(program, "DEL", env, conf))).toEqual({});
    await eventually(async () => (await leasesOf(env.CNI_CONTAINERID)).length === 0, "the leases to be given up");
    await eventually(() => agent.links().length === links, "the interface to be taken away");
  });
});

describeWith("the small program before the allocator's service", ["linux", "root", "musl"], () => {
  test("pipette-ipam's verbs are the service's, after a first call by the whole program", async () => {
    compileExecutables();
    const socket = join(directory.path, "ipam", "ipam.sock");
    const dataDir = join(directory.path, "ipam-data");
    const service = new AgentProcess([whole, "ipam", "serve", "--socket", socket, "--data-dir", dataDir]);
    try {
      await service.logged((line) => line["message"] === "ready");
      const conf = {
        cniVersion: "1.1.0",
        name: "n",
        type: "bridge",
        ipam: { type: "pipette-ipam", dataDir, subnet: "10.9.0.0/24" },
      };
      const [alone, before] = await Promise.all([
        small("ipam-alone", socket, nowhere),
        small("ipam-before", socket, whole),
      ]);
      const ipam = (program: string, verb: string, id: string, more: object = {}) =>
        call(program, verb, { CNI_CONTAINERID: id }, { ...conf, ...more }, "pipette-ipam");
      // Whether host-local was there before is looked up once, by a process of the caller's own.
      expect(errorOfSmall(await ipam(alone, "ADD", "a"))).toBe(5);
      const first = resultOf(await ipam(before, "ADD", "a"));
      expect(resultOf(await ipam(alone, "ADD", "a"))).toEqual(first);
      expect(resultOf(await ipam(alone, "ADD", "b"))).toMatchObject({ ips: [{ address: "10.9.0.3/24" }] });
      expect(resultOf(await ipam(alone, "CHECK", "a", { prevResult: first }))).toEqual({});
      expect(resultOf(await ipam(alone, "STATUS", "a"))).toEqual({});
      expect(resultOf(await ipam(alone, "DEL", "a"))).toEqual({});
      expect(resultOf(await ipam(alone, "GC", "a", { "cni.dev/valid-attachments": [] }))).toEqual({});
      expect(resultOf(await ipam(alone, "ADD", "c"))).toMatchObject({ ips: [{ address: "10.9.0.4/24" }] });
      await service.end("SIGKILL");
      expect(resultOf(await ipam(before, "DEL", "c"))).toEqual({});
    } finally {
      await service.end("SIGKILL");
    }
  });
});

/** Where the whole program would have been needed. */
const errorOfSmall = (ended: { readonly stdout: string }): number => JSON.parse(ended.stdout).code;
