import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Allocator, parseIpamConfig } from "../../ipam/mod.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import { Fields, isObject } from "../../shared/schema/json-fields.ts";
import { encodeRequest } from "../fakes/forward-request.ts";
import { readCorpus } from "../fuzz/engine/corpus.ts";
import { jsonOf } from "../fuzz/targets/words.ts";
import { startCommand } from "../support/cni-call.ts";
import { eventually } from "../support/eventually.ts";
import { compiledBuildId, ForwardClient, forward } from "../support/forward-client.ts";
import { describeWith } from "../support/requires.ts";
import { compileExecutables, executables, run, scratch, variables } from "./plugin.ts";
import { type RealAgent, startRealAgent } from "./real-agent.ts";

// Calls in the bytes of the small program in front of the executable: what a daemon answers is what the whole program
// says and does, byte for byte, or PASS.

type Variables = Readonly<Record<string, string | undefined>>;
type Plugin = "pipette" | "pipette-ipam";

const faceOf = (plugin: Plugin): number => (plugin === "pipette" ? 0 : 1);

/** Only what differs between any two runs of the same program is taken out. */
const comparable = (log: string): string =>
  log.replaceAll(/"time":"[^"]*"|"pid":\d+|"ms":[\d.]+|"durationMs":[\d.]+/g, "…");

async function handedOver(socket: string, plugin: Plugin, env: Variables, conf: unknown) {
  const given = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  const stdin = typeof conf === "string" ? conf : JSON.stringify(conf);
  const answers = await forward(socket, { env: Object.fromEntries(given), stdin, face: faceOf(plugin) });
  const last = answers.at(-1);
  if (last?.kind !== "done") return last?.kind ?? "lost";
  return { status: last.status, stdout: last.stdout, stderr: comparable(last.stderr) };
}

async function executed(plugin: Plugin, env: Variables, conf: unknown) {
  const { status, stdout, stderr } = await run({ executable: plugin, env, stdin: conf });
  return { status, stdout, stderr: comparable(stderr) };
}

describeWith("calls handed to the agent", ["linux", "root", "cni-plugins"], () => {
  let agent: RealAgent;
  let socket: string;
  let base: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    compileExecutables();
    agent = await startRealAgent();
    socket = agent.conf["socket"] as string;
    base = { ...agent.conf, cniVersion: "1.1.0" };
  });
  afterAll(() => agent?.[Symbol.asyncDispose]());

  const same = async (env: Variables, conf: unknown, plugin: Plugin = "pipette"): Promise<unknown> => {
    const here = await handedOver(socket, plugin, env, conf);
    expect(here).toEqual(await executed(plugin, env, conf));
    return here;
  };

  test("ADD, CHECK, STATUS, DEL and GC do and say what the whole program does and says", async () => {
    const netns = agent.addPod();
    const env = (verb: string) => variables(verb, { CNI_CONTAINERID: "whole", CNI_NETNS: netns });
    const added = await same(env("ADD"), base);
    const { stdout } = added as { stdout: string };
    expect(JSON.parse(stdout)).toMatchObject({ cniVersion: "1.1.0", ips: [{}, {}] });
    expect(agent.links().length).toBeGreaterThan(1);
    const prevResult = JSON.parse(stdout);
    expect(await same(env("CHECK"), { ...base, prevResult })).toMatchObject({ status: 0, stdout: "" });
    expect(await same(env("CHECK"), { ...base, prevResult: { ...prevResult, ips: [] } })).toMatchObject({ status: 1 });
    expect(await same(variables("STATUS"), base)).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(await same(variables("STATUS"), { ...base, name: "other" })).toMatchObject({ status: 1 });
    const kept = { ...base, "cni.dev/valid-attachments": [{ containerID: "whole", ifname: "eth0" }] };
    const before = agent.links();
    expect(await same(variables("GC"), kept)).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(agent.links()).toEqual(before);
    expect(await same(env("DEL"), base)).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(agent.links().length).toBeLessThan(before.length);
    using store = await Allocator.open(agent.dataDir);
    expect(store.find({ network: "n", sandboxId: "whole", ifname: "eth0" })).toEqual([]);
    expect(await same(variables("VERSION"), base)).toMatchObject({ status: 0 });
  });

  test("GC ends what the runtime does not list", async () => {
    const env = variables("ADD", { CNI_CONTAINERID: "stray", CNI_NETNS: agent.addPod() });
    expect(await handedOver(socket, "pipette", env, base)).toMatchObject({ status: 0 });
    const before = agent.links();
    const conf = { ...base, "cni.dev/valid-attachments": [] };
    expect(await handedOver(socket, "pipette", variables("GC"), conf)).toMatchObject({ status: 0, stdout: "" });
    expect(agent.links().length).toBeLessThan(before.length);
  });

  const wrong: readonly (readonly [string, Variables, object | string])[] = [
    ["a variable that is missing", variables("ADD", { CNI_IFNAME: undefined }), {}],
    ["an interface that cannot be", variables("ADD", { CNI_IFNAME: "a/b" }), {}],
    ["a verb that is none", variables("NONE"), {}],
    ["a namespace that is not there", variables("ADD"), {}],
    ["CNI_ARGS that cannot be read", variables("ADD", { CNI_ARGS: "a;b" }), {}],
    ["no JSON", variables("ADD"), "{"],
    ["an empty configuration", variables("DEL"), ""],
    ["another version", variables("ADD"), { cniVersion: "9.0.0" }],
    ["a verb that its version has not", variables("STATUS"), { cniVersion: "1.0.0" }],
    ["a wrong MTU", variables("ADD"), { mtu: 1 }],
    ["a wrong timeout, which DEL bears", variables("DEL"), { delTimeoutMs: "x", logLevel: "warn" }],
    ["a network that the agent has not", variables("ADD"), { name: "other" }],
    ["a CHECK without a result", variables("CHECK"), {}],
    ["a list that is none", variables("GC"), { "cni.dev/valid-attachments": 5 }],
    ["an address that is none", variables("ADD"), { ipam: { type: "pipette-ipam", subnet: "x" } }],
    ["debug lines", variables("DEL"), { logLevel: "debug" }],
  ];
  test.each(wrong)("%s: the same words", async (_, env, change) => {
    await same(env, typeof change === "string" ? change : { ...base, ...withDataDir(agent.dataDir, change) });
  });

  test("the fuzzers' corpora of configurations and variables end in the same words", async () => {
    let answered = 0;
    const compare = async (env: Variables, text: string): Promise<void> => {
      const conf = hereIn(agent, text);
      const here = await handedOver(socket, "pipette", env, conf);
      if (here === "pass") return;
      answered++;
      expect(here, `${env["CNI_COMMAND"]} ${text}`).toEqual(await executed("pipette", env, conf));
    };
    for (const { bytes } of readCorpus("network-configuration"))
      for (const verb of ["ADD", "DEL", "GC"]) await compare(variables(verb), new TextDecoder().decode(bytes));
    for (const { bytes } of readCorpus("cni-variables")) {
      const { env, stdin } = asCall(bytes);
      await compare(env, stdin);
    }
    expect(answered).toBeGreaterThan(20);
  });

  const elsewhere: readonly (readonly [string, (base: object) => object])[] = [
    ["another agent's socket", (conf) => ({ ...conf, socket: "/run/pt-cf-other.sock" })],
    ["another data directory", () => ({ ...base, ipam: undefined, dataDir: "/var/lib/pt-cf-other" })],
    ["another data directory of its addresses", () => ({ ...base, ipam: { type: "pipette-ipam", dataDir: "/pt-cf" } })],
    ["another IPAM plugin", (conf) => ({ ...conf, ipam: { type: "host-local", subnet: "10.1.0.0/24" } })],
    ["a log file", (conf) => ({ ...conf, logFile: "/tmp/pt-cf-forwarded.log", logLevel: "debug" })],
  ];
  test.each(elsewhere)("%s is the caller's business", async (_, change) => {
    for (const verb of ["ADD", "DEL", "CHECK", "STATUS", "GC"]) {
      expect(await handedOver(socket, "pipette", variables(verb), change(base)), verb).toBe("pass");
    }
    expect(existsSync("/tmp/pt-cf-forwarded.log")).toBe(false);
  });

  test("two at once are wired both, and one twice is wired once", async () => {
    const pods = ["p", "q"].map((id) => variables("ADD", { CNI_CONTAINERID: id, CNI_NETNS: agent.addPod() }));
    const ended = await Promise.all([...pods, ...pods].map((env) => handedOver(socket, "pipette", env, base)));
    expect(ended[0]).toMatchObject({ status: 0 });
    expect(ended.slice(0, 2)).toEqual(ended.slice(2));
    expect(ended[0]).not.toEqual(ended[1]);
    for (const env of pods)
      expect(await handedOver(socket, "pipette", { ...env, CNI_COMMAND: "DEL" }, base)).toMatchObject({ status: 0 });
  });

  test("TAKEN comes before the work, with what is left of the time", async () => {
    const env = variables("DEL", { CNI_CONTAINERID: "nobody" }) as Record<string, string>;
    const conf = JSON.stringify({ ...base, delTimeoutMs: 5_000 });
    const answers = await forward(socket, { env, stdin: conf });
    expect(answers.map(({ kind }) => kind)).toEqual(["taken", "done"]);
    expect(answers[0]?.moreMs).toBeGreaterThan(3_000);
    expect(answers[0]?.moreMs).toBeLessThanOrEqual(5_000);
  });

  test("another build is passed, as is what is too long", async () => {
    const env = variables("DEL") as Record<string, string>;
    const stdin = JSON.stringify(base);
    const kinds = async (request: Parameters<typeof forward>[1]) =>
      (await forward(socket, { env, stdin, ...request })).map(({ kind }) => kind);
    expect(await kinds({ buildId: new Uint8Array(16) })).toEqual(["pass"]);
    expect(await kinds({ stdin: " ".repeat(8 * 1024) })).toEqual(["pass"]);
    expect(await kinds({ stdin: " ".repeat(10_000_000) })).toEqual(["pass"]);
    expect(await kinds({ env: { ...env, CNI_ARGS: "x".repeat(70_000) } })).toEqual(["pass"]);
  });

  test("a request that is cut off anywhere, or is not there whole in time, does nothing", async () => {
    const env = variables("ADD", { CNI_CONTAINERID: "cut", CNI_NETNS: agent.addPod() }) as Record<string, string>;
    const bytes = encodeRequest({ env, stdin: JSON.stringify(base), buildId: compiledBuildId() });
    const before = agent.links();
    for (let at = 0; at < bytes.length; at += 7) {
      using client = new ForwardClient(socket);
      client.send(bytes.slice(0, at));
    }
    using slow = new ForwardClient(socket);
    slow.send(bytes.slice(0, -1));
    expect(await slow.ended()).toEqual([]);
    expect(agent.links()).toEqual(before);
    using store = await Allocator.open(agent.dataDir);
    expect(store.find({ network: "n", sandboxId: "cut", ifname: "eth0" })).toEqual([]);
    using pieces = new ForwardClient(socket);
    const anew = encodeRequest({ env, stdin: JSON.stringify(base), buildId: compiledBuildId() });
    for (let at = 0; at < anew.length; at += 40) pieces.send(anew.slice(at, at + 40));
    expect((await pieces.ended()).map(({ kind, status }) => [kind, status])).toEqual([
      ["taken", 0],
      ["done", 0],
    ]);
  });

  test("an ADD whose caller goes leaves nothing behind", async () => {
    const env = variables("ADD", { CNI_CONTAINERID: "gone", CNI_NETNS: agent.addPod() }) as Record<string, string>;
    const before = agent.links();
    {
      using client = new ForwardClient(socket);
      client.send(encodeRequest({ env, stdin: JSON.stringify(base), buildId: compiledBuildId() }));
      await eventually(() => client.answers[0]?.kind === "taken", "the agent to take the call");
    }
    // What it had not finished by then it has taken back; what it had, the runtime's DEL ends.
    expect(await handedOver(socket, "pipette", { ...env, CNI_COMMAND: "DEL" }, base)).toMatchObject({ status: 0 });
    expect(agent.links()).toEqual(before);
  });

  test("pipette-ipam's calls are answered for the same data directory", async () => {
    await ipamVerbs(socket, { cniVersion: "1.1.0", name: "ipam-by-agent", type: "pipette", dataDir: agent.dataDir });
  });
});

describeWith("the whole program, where a call was left to it", ["linux"], () => {
  const goOn = async (fate: "unasked" | "lost", verb: string, agedMs: number, conf: object) => {
    const started = String(Math.floor(((uptimeMs() ?? 0) - agedMs) * 1000));
    const env = Object.entries(variables(verb, { CNI_NETNS: "/run/pt-cf" })).map(([name, value]) => [
      name,
      value ?? "",
    ]);
    const command = [`${executables}/pipette`, "--forwarded", fate, started];
    return await startCommand(command, Object.fromEntries(env), JSON.stringify(conf)).ended;
  };

  test("a lost ADD gives up what it may have got, one that reached nobody leaves what there is, and neither begins anew", async () => {
    compileExecutables();
    using directory = scratch();
    const dataDir = directory.path;
    const conf = { cniVersion: "1.1.0", name: "n", type: "pipette", socket: `${dataDir}/s`, dataDir };
    using store = await Allocator.open(dataDir);
    const owner = { network: "n", sandboxId: "c1", ifname: "eth0" };
    const fields = new Fields({ ...conf, ipam: { subnet: "10.1.0.0/24" } });
    store.allocate(owner, parseIpamConfig({ conf: fields, network: "n", version: "1.1.0", args: "" }));
    // The time of the call is nearly over, so nobody is waited for any more.
    const late = { ...conf, addTimeoutMs: 600_000 };
    expect(JSON.parse((await goOn("unasked", "ADD", 599_999, late)).stdout)).toMatchObject({ code: 11 });
    expect(store.find(owner)).toHaveLength(1);
    expect(JSON.parse((await goOn("lost", "ADD", 599_999, late)).stdout)).toMatchObject({ code: 11 });
    expect([store.find(owner).length, store.releasing(owner).length]).toEqual([0, 1]);
  });

  test("a DEL without an agent is durable", async () => {
    using directory = scratch();
    const dataDir = directory.path;
    const conf = { cniVersion: "1.1.0", name: "n", type: "pipette", socket: `${dataDir}/s`, dataDir };
    expect(await goOn("lost", "DEL", 599_999, conf)).toMatchObject({ status: 0, stdout: "" });
    using store = await Allocator.open(dataDir);
    expect(store.pendingDetaches()).toEqual([{ network: "n", sandboxId: "c1", ifname: "eth0" }]);
  });
});

describeWith("calls handed to the allocator's service", ["linux"], () => {
  test("pipette-ipam's are answered, pipette's are passed", async () => {
    compileExecutables();
    using directory = scratch();
    const [socket, dataDir] = [`${directory.path}/run/ipam.sock`, `${directory.path}/data`];
    const command = ["ipam", "serve", "--socket", socket, "--data-dir", dataDir];
    const service = spawn(`${executables}/pipette`, command, { stdio: ["ignore", "ignore", "pipe"] });
    const ended = new Promise((resolve) => service.on("close", resolve));
    let log = "";
    service.stderr.on("data", (part) => {
      log += part;
    });
    try {
      await eventually(() => log.includes('"message":"ready"'), "the service to be ready");
      await ipamVerbs(socket, { cniVersion: "1.1.0", name: "n", type: "bridge", dataDir });
      const conf = { cniVersion: "1.1.0", name: "n", type: "pipette", dataDir };
      expect(await handedOver(socket, "pipette", variables("DEL"), conf)).toBe("pass");
    } finally {
      service.kill("SIGTERM");
      await ended;
    }
  });
});

/** A configuration as it came, but for the places in it: those of the machine's own agent are not for tests. */
function hereIn({ conf, dataDir }: RealAgent, text: string): unknown {
  const read = jsonOf(new TextEncoder().encode(text));
  if (!isObject(read)) return text;
  const ipam = isObject(read["ipam"]) ? { ipam: { ...read["ipam"], dataDir } } : {};
  return { ...read, ...ipam, socket: conf["socket"], dataDir };
}

/** An input of the corpus "cni-variables"; the usual call where it is none. */
function asCall(bytes: Uint8Array): { readonly env: Variables; readonly stdin: string } {
  const read = jsonOf(bytes);
  if (!isObject(read) || !isObject(read["env"])) return { env: variables("ADD"), stdin: "{}" };
  const named = Object.entries(read["env"]).filter(([name]) => name.startsWith("CNI_"));
  const env = Object.fromEntries(named.map(([name, value]) => [name, String(value).replaceAll("\0", "")]));
  return { env: { CNI_COMMAND: "ADD", ...env }, stdin: JSON.stringify(read["stdin"] ?? {}) };
}

/** `ipam` without its type counts for the agent only. */
function withDataDir(dataDir: string, change: object): object {
  return "ipam" in change ? { ...change, ipam: { ...(change.ipam as object), dataDir } } : change;
}

interface IpamConf {
  readonly cniVersion: string;
  readonly name: string;
  readonly type: string;
  readonly dataDir: string;
}

async function ipamVerbs(socket: string, { dataDir, ...network }: IpamConf): Promise<void> {
  const ipam = { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.9.0.0/24" }]] };
  const conf = { ...network, ipam };
  const call = (env: Variables, change: object = {}) => handedOver(socket, "pipette-ipam", env, { ...conf, ...change });
  const same = async (env: Variables, change: object = {}) => {
    const here = await call(env, change);
    expect(here).toEqual(await executed("pipette-ipam", env, { ...conf, ...change }));
    return here;
  };
  const env = (verb: string, id = "a") => variables(verb, { CNI_CONTAINERID: id });
  // Whether host-local was there before is for the caller to look, once.
  expect(await call(env("ADD"))).toBe("pass");
  await executed("pipette-ipam", env("ADD"), conf);
  const added = await same(env("ADD"));
  const prevResult = JSON.parse((added as { stdout: string }).stdout);
  expect(await same(env("ADD", "b"))).toMatchObject({ status: 0 });
  expect(await same(env("CHECK"), { prevResult })).toMatchObject({ status: 0, stdout: "" });
  expect(await same(env("CHECK", "c"), { prevResult })).toMatchObject({ status: 1 });
  expect(await same(variables("STATUS"))).toMatchObject({ status: 0, stdout: "" });
  expect(await call(variables("STATUS"), { ipam: { ...ipam, ranges: 5 } })).toBe("pass");
  expect(await same(variables("VERSION"))).toMatchObject({ status: 0 });
  expect(await call(env("ADD"), { ipam: { ...ipam, subnet: "x" } })).toBe("pass");
  expect(await same(env("CHECK"), { prevResult: 5 })).toMatchObject({ status: 1 });
  expect(await same(env("ADD"), { cniVersion: "0.2.0" })).toMatchObject({ status: 0 });
  const kept = { "cni.dev/valid-attachments": [{ containerID: "a", ifname: "eth0" }] };
  expect(await call(variables("GC"), kept)).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('sandbox "b"'),
  });
  expect(await same(env("DEL"))).toEqual({ status: 0, stdout: "", stderr: "" });
  expect(await same(env("DEL"))).toEqual({ status: 0, stdout: "", stderr: "" });
  using store = await Allocator.open(dataDir);
  expect(store.find({ network: network.name, sandboxId: "a", ifname: "eth0" })).toEqual([]);
  expect(await call(env("ADD"), { ipam: { ...ipam, dataDir: "/var/lib/pt-cf-other" } })).toBe("pass");
  expect(await call(env("ADD"), { ipam: { ...ipam, resolvConf: "/etc/resolv.conf" } })).toBe("pass");
  const sets = (count: number) => Array.from({ length: count }, (_, i) => [{ subnet: `10.8.${i}.0/24` }]);
  expect(await call(env("ADD", "many"), { ipam: { ...ipam, ranges: sets(17) } })).toBe("pass");
  expect(await call(env("ADD", "many"), { ipam: { ...ipam, ranges: sets(16) } })).toMatchObject({ status: 0 });
}
