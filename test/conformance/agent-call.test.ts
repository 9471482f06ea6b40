import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { leasesIn, pendingDetachesIn } from "./leases.ts";
import { compileExecutables, errorOf, resultOf, run, scratch, variables } from "./plugin.ts";
import { obliging, obligingButAnswering, refusing, type ScriptedAgent, startScriptedAgent } from "./scripted-agent.ts";

beforeAll(compileExecutables);

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});

/** A network whose leases lie inside a directory of the test. */
function network(socket: string, more: object = {}) {
  const directory = scratch();
  undo.push(() => directory[Symbol.dispose]());
  const dataDir = `${directory.path}/leases`;
  const conf = {
    cniVersion: "1.1.0",
    name: "n",
    type: "pipette",
    socket,
    dataDir: directory.path,
    ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.1.0.0/24" }]] },
    ...more,
  };
  return { conf, dataDir, path: directory.path };
}

const stateOf = async (dataDir: string): Promise<string[]> =>
  (await leasesIn(dataDir)).map(({ address, state, containerId }) => `${address} ${state} ${containerId}`);

describe("the call to the agent", () => {
  test("ADD sends every argument of the runtime, and the configuration byte for byte", async () => {
    await using agent = await startScriptedAgent();
    const { conf } = network(agent.socket);
    const env = variables("ADD");
    resultOf(await run({ env, stdin: conf }));
    expect(agent.asked).toHaveLength(1);
    const { method, request } = agent.asked[0]!;
    expect(method).toBe("CmdAdd");
    const { network_configuration, ...rest } = request;
    expect(rest).toEqual({
      container_id: env.CNI_CONTAINERID,
      netns: env.CNI_NETNS,
      ifname: env.CNI_IFNAME,
      args: env.CNI_ARGS,
      path: env.CNI_PATH,
    });
    expect(network_configuration).toBe(JSON.stringify(conf));
  });

  test("the agent answers with what it likes: code and message are passed on, and nothing is kept", async () => {
    await using agent = await startScriptedAgent(refusing(102, "Cannot make the interface: the bridge is down"));
    const { conf, dataDir } = network(agent.socket);
    const failed = errorOf(await run({ env: variables("ADD"), stdin: conf }));
    expect(failed).toMatchObject({ code: 102, msg: "Cannot make the interface: the bridge is down" });
    expect(existsSync(dataDir)).toBe(false);
  });

  test.each([
    ["UNAVAILABLE", 14, 11],
    ["DEADLINE_EXCEEDED", 4, 11],
    ["UNIMPLEMENTED", 12, 202],
    ["INTERNAL", 13, 201],
    ["PERMISSION_DENIED", 7, 201],
  ])("a status of %s becomes the reference plugin's code", async (_, grpcCode, code) => {
    await using agent = await startScriptedAgent(() => ({ grpcCode, message: "Because of the moon" }));
    const { conf } = network(agent.socket);
    const failed = errorOf(await run({ env: variables("ADD"), stdin: conf }));
    expect(failed.code).toBe(code);
    expect(failed.msg).toContain("Because of the moon");
    expect(failed.details).toContain(agent.socket);
  });

  test.each([
    ["empty", ""],
    ["no JSON", "{"],
    ["a list", "[]"],
  ])("a result that is %s is refused, and its address not given away", async (_, text) => {
    await using agent = await startScriptedAgent(obligingButAnswering(() => ({ cni_result: text })));
    const { conf, dataDir } = network(agent.socket);
    expect(errorOf(await run({ env: variables("ADD"), stdin: conf })).code).toBe(201);
    expect(await stateOf(dataDir)).toEqual(["10.1.0.2/24 releasing c1"]);
  });

  test("an ADD that fails gives back only what it took: the lease of an earlier one stays", async () => {
    await using agent = await startScriptedAgent();
    const { conf, dataDir } = network(agent.socket);
    resultOf(await run({ env: variables("ADD"), stdin: conf }));
    agent.follow(() => ({ cni_result: "{" }));
    errorOf(await run({ env: variables("ADD"), stdin: conf }));
    expect(await stateOf(dataDir)).toEqual(["10.1.0.2/24 allocated c1"]);
  });

  test("an agent learns since when and until when its caller waits", async () => {
    await using agent = await startScriptedAgent();
    const { conf } = network(agent.socket, { addTimeoutMs: 7000 });
    // To a hundredth of a second, and a clock that nobody can set.
    const uptime = (): number => Number.parseFloat(readFileSync("/proc/uptime", "utf8")) * 1000;
    const before = uptime() - 10;
    resultOf(await run({ env: variables("ADD"), stdin: conf }));
    const [started, until] = ["pipette-started-uptime-ms", "pipette-until-uptime-ms"].map((name) =>
      Number(agent.asked[0]!.metadata.get(name)[0]),
    );
    expect(started).toBeGreaterThanOrEqual(before);
    expect(until).toBeGreaterThanOrEqual(started! + 7000);
    expect(until).toBeLessThanOrEqual(uptime() + 10 + 7000);
  });

  test("ADD again gives the same answer", async () => {
    await using agent = await startScriptedAgent();
    const { conf } = network(agent.socket);
    const first = resultOf(await run({ env: variables("ADD"), stdin: conf }));
    expect(resultOf(await run({ env: variables("ADD"), stdin: conf }))).toEqual(first);
  });

  test("the trace of the runtime is passed on as metadata", async () => {
    await using agent = await startScriptedAgent();
    const { conf } = network(agent.socket);
    const trace = {
      TRACEPARENT: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      TRACESTATE: "vendor=1",
      BAGGAGE: "user=é",
    };
    resultOf(await run({ env: { ...variables("ADD"), ...trace }, stdin: conf }));
    const metadata = agent.asked[0]!.metadata;
    expect(metadata.get("traceparent")).toEqual([trace.TRACEPARENT]);
    expect(metadata.get("tracestate")).toEqual([trace.TRACESTATE]);
    // What no header can carry must not stop the call.
    expect(metadata.get("baggage")).toEqual([]);
  });
});

describe("without an agent", () => {
  // As this machine has it: a command that is not there is not named.
  const whereToLook = existsSync("/run/systemd/system")
    ? '"systemctl status pipette-agent", or the log of'
    : "the log of the agent's pod on this node, or of";

  test.each(["ADD", "CHECK"])(
    "%s waits for one until its deadline, says where to look, and keeps nothing",
    async (verb) => {
      const { conf, dataDir, path } = network("", { addTimeoutMs: 1000 });
      const socket = `${path}/none.sock`;
      const prevResult = { cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/24" }] };
      const ended = await run({
        env: variables(verb),
        stdin: { ...conf, socket, ...(verb === "CHECK" ? { prevResult } : {}) },
      });
      expect(errorOf(ended)).toMatchObject({
        code: 11,
        msg: `Cannot ask the agent at "${socket}": nobody listens (ENOENT), wanted an agent`,
        details: expect.stringMatching(`^it was waited for [0-9]{3} ms; ${whereToLook} `),
      });
      expect(ended.ms).toBeGreaterThanOrEqual(700);
      expect(existsSync(dataDir)).toBe(false);
    },
  );

  test("ADD waits where a killed agent left its socket behind, and finds the next one", async () => {
    using directory = scratch();
    const socket = `${directory.path}/cni.sock`;
    const listen = `require("node:net").createServer().listen(${JSON.stringify(socket)}, () => console.log("up"))`;
    const killed = spawn(process.execPath, ["-e", listen], { stdio: ["ignore", "pipe", "inherit"] });
    await once(killed.stdout!, "data");
    killed.kill("SIGKILL");
    await once(killed, "exit");
    const { conf } = network(socket, { addTimeoutMs: 500 });
    const refused = await run({ env: variables("ADD"), stdin: conf });
    expect(errorOf(refused)).toMatchObject({ code: 11, msg: expect.stringContaining("(ECONNREFUSED)") });
    expect(refused.ms).toBeGreaterThanOrEqual(300);
    const waiting = run({ env: variables("ADD"), stdin: { ...conf, addTimeoutMs: 30_000 } });
    await Bun.sleep(500);
    rmSync(socket);
    await using next = await startScriptedAgent(obliging(), "both", socket);
    resultOf(await waiting);
    expect(next.asked.map(({ method }) => method)).toEqual(["CmdAdd"]);
  });

  test("section 2 DEL: succeeds durably, and the lease waits for the agent", async () => {
    await using agent = await startScriptedAgent();
    const { conf, dataDir } = network(agent.socket);
    resultOf(await run({ env: variables("ADD"), stdin: conf }));
    agent.stop();
    const ended = await run({ env: variables("DEL"), stdin: { ...conf, delTimeoutMs: 20_000 } });
    expect([ended.status, ended.stdout]).toEqual([0, ""]);
    expect(ended.stderr).toContain("has not unwired the sandbox");
    expect(ended.ms).toBeLessThan(20_000 / 5);
    expect(await stateOf(dataDir)).toEqual(["10.1.0.2/24 releasing c1"]);
    expect((await run({ env: variables("DEL"), stdin: conf })).status).toBe(0);
    expect(await stateOf(dataDir)).toEqual(["10.1.0.2/24 releasing c1"]);
  });

  test("section 2 CHECK: an agent that is away is code 11, not a failed check", async () => {
    await using agent = await startScriptedAgent();
    const { conf } = network(agent.socket);
    const prevResult = resultOf(await run({ env: variables("ADD"), stdin: conf }));
    agent.stop();
    const stdin = { ...conf, prevResult, addTimeoutMs: 500 };
    const failed = errorOf(await run({ env: variables("CHECK"), stdin }));
    expect(failed.code).toBe(11);
  });

  test("section 2 GC: succeeds durably, and the leases wait for the agent", async () => {
    await using agent = await startScriptedAgent();
    const { conf, dataDir } = network(agent.socket);
    for (const id of ["c1", "c2"]) resultOf(await run({ env: variables("ADD", { CNI_CONTAINERID: id }), stdin: conf }));
    agent.stop();
    const valid = [{ containerID: "c2", ifname: "eth0" }];
    const ended = await run({ env: variables("GC"), stdin: { ...conf, "cni.dev/valid-attachments": valid } });
    expect([ended.status, ended.stdout]).toEqual([0, ""]);
    expect(await stateOf(dataDir)).toEqual(["10.1.0.2/24 releasing c1", "10.1.0.3/24 allocated c2"]);
  });

  test("section 2 STATUS: code 50 says that the agent is away, and where it was looked for", async () => {
    const { conf, path } = network("");
    const socket = `${path}/none.sock`;
    const ended = await run({ env: variables("STATUS"), stdin: { ...conf, socket } });
    expect(errorOf(ended)).toMatchObject({
      code: 50,
      msg: expect.stringContaining(socket),
      details: expect.stringContaining(whereToLook),
    });
    // A runtime polls it, and waits for nobody meanwhile.
    expect(ended.ms).toBeLessThan(5000 / 2);
  });

  test("where another IPAM plugin keeps the address, DEL leaves word for the agent", async () => {
    const { conf, path } = network("", { ipam: { type: "static", addresses: [{ address: "10.9.0.9/24" }] } });
    const stdin = { ...conf, cniVersion: "1.0.0", socket: `${path}/none.sock` };
    expect((await run({ env: variables("DEL"), stdin })).status).toBe(0);
    expect(await pendingDetachesIn(path)).toEqual([{ network: "n", sandboxId: "c1", ifname: "eth0" }]);
  });
});

describe("with an agent that accepts and never answers", () => {
  const deadlineMs = 1000;

  test("ADD ends at its deadline with code 11, and its address waits for the agent", async () => {
    await using agent = await startScriptedAgent(obligingButAnswering(() => "silence"));
    const { conf, dataDir } = network(agent.socket, { addTimeoutMs: deadlineMs });
    const ended = await run({ env: variables("ADD"), stdin: conf });
    const failed = errorOf(ended);
    expect(failed.code).toBe(11);
    // The small program in front has had a part of the time; and a busy agent may be quicker to say so itself.
    expect(failed.msg).toMatch(/there is no answer after (1000|\d{1,3}) ms|Deadline exceeded/);
    expect(ended.ms).toBeGreaterThanOrEqual(deadlineMs * 0.9);
    expect(await stateOf(dataDir)).toEqual(["10.1.0.2/24 releasing c1"]);
  });

  test("DEL ends at its deadline with success, and the lease waits for the agent", async () => {
    await using agent = await startScriptedAgent();
    const { conf, dataDir } = network(agent.socket, { delTimeoutMs: deadlineMs });
    resultOf(await run({ env: variables("ADD"), stdin: conf }));
    agent.follow(() => "silence");
    const ended = await run({ env: variables("DEL"), stdin: conf });
    expect(ended.status).toBe(0);
    expect(ended.ms).toBeGreaterThanOrEqual(deadlineMs * 0.9);
    expect(await stateOf(dataDir)).toEqual(["10.1.0.2/24 releasing c1"]);
  });

  test("the same holds where the whole process is frozen", async () => {
    const { conf, dataDir, path } = network("", { addTimeoutMs: deadlineMs, delTimeoutMs: deadlineMs });
    const socket = `${path}/frozen.sock`;
    const listen = `require("node:net").createServer(() => {}).listen(${JSON.stringify(socket)}, () => console.log("up"))`;
    const frozen = spawn(process.execPath, ["-e", listen], { stdio: ["ignore", "pipe", "inherit"] });
    undo.push(() => frozen.kill("SIGKILL"));
    await once(frozen.stdout!, "data");
    frozen.kill("SIGSTOP");
    expect(errorOf(await run({ env: variables("ADD"), stdin: { ...conf, socket } })).code).toBe(11);
    expect((await run({ env: variables("DEL"), stdin: { ...conf, socket } })).status).toBe(0);
    expect(await pendingDetachesIn(dataDir)).toEqual([{ network: "n", sandboxId: "c1", ifname: "eth0" }]);
  });
});

describe("with a listener whose queue is full", () => {
  const listening = (socket: string): string =>
    `import { listenAgain } from ${JSON.stringify(`${import.meta.dirname}/../../shared/server/socket-place.linux.ts`)};
     const listener = Bun.listen({ unix: ${JSON.stringify(socket)}, socket: { data() {} } });
     listenAgain(listener.fd, 0);
     console.log("up");`;

  test("ADD waits for its turn, and ends at its deadline with code 11 where none comes", async () => {
    const { conf, dataDir, path } = network("", { addTimeoutMs: 1000 });
    const socket = `${path}/full.sock`;
    const listener = spawn(process.execPath, ["-e", listening(socket)], { stdio: ["ignore", "pipe", "inherit"] });
    undo.push(() => listener.kill("SIGKILL"));
    await once(listener.stdout!, "data");
    listener.kill("SIGSTOP");
    const fillers = [0, 1].map(() => connect(socket).on("error", () => undefined));
    undo.push(() => fillers.forEach((filler) => void filler.destroy()));
    const ended = await run({ env: variables("ADD"), stdin: { ...conf, socket } });
    expect(errorOf(ended)).toMatchObject({
      code: 11,
      msg: expect.stringMatching(/took no connection within \d+ ms/),
    });
    expect(ended.ms).toBeGreaterThanOrEqual(900);
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe("with something else behind the socket", () => {
  test.each([
    ["that closes at once", ""],
    ["that speaks HTTP/1.1", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["that sends noise", "\u0000\u0001".repeat(5000)],
  ])("one %s is an error of its own, and DEL succeeds durably", async (_, says) => {
    const { conf, dataDir, path } = network("");
    const socket = `${path}/other.sock`;
    const server: Server = createServer((peer) => peer.on("error", () => undefined).end(says));
    undo.push(() => server.close());
    await once(server.listen(socket), "listening");
    const failed = errorOf(await run({ env: variables("ADD"), stdin: { ...conf, socket } }));
    expect([11, 201]).toContain(failed.code);
    expect(failed.msg).toContain(socket);
    expect((await run({ env: variables("DEL"), stdin: { ...conf, socket } })).status).toBe(0);
    expect(await pendingDetachesIn(dataDir)).toEqual([{ network: "n", sandboxId: "c1", ifname: "eth0" }]);
  });
});

describe("with an agent of the reference system's kind, which has the Cni service only", () => {
  const only = (agent: ScriptedAgent) => network(agent.socket).conf;

  test.each([
    ["GC", { "cni.dev/valid-attachments": [] }],
    ["STATUS", {}],
  ])("UNIMPLEMENTED is no error for %s", async (verb, more) => {
    await using agent = await startScriptedAgent(obliging(), "cni");
    const ended = await run({ env: variables(verb), stdin: { ...only(agent), ...more } });
    expect([ended.status, ended.stdout, ended.stderr]).toEqual([0, "", ""]);
  });

  test("without an ipam section the configuration reaches it byte for byte", async () => {
    const text = '{ "name":"n","cniVersion":"0.4.0",\n "type":"antrea", "keep":  1.0 }\n';
    await using agent = await startScriptedAgent(() => ({ cni_result: '{"cniVersion":"0.4.0"}' }));
    using directory = scratch();
    const stdin = text.replace('"keep"', `"socket":"${agent.socket}","dataDir":"${directory.path}","keep"`);
    resultOf(await run({ env: variables("ADD"), stdin }));
    expect(agent.asked[0]!.request["network_configuration"]).toBe(stdin);
    expect(directory.files()).toEqual([]);
  });
});
