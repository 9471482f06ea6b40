import { chmodSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { traceCommand } from "../../agent/commands/trace/trace-command.ts";
import { getCommand, logLevelCommand, SocketSource } from "../../operator/mod.ts";
import { runAt, type TerminalRun } from "../fakes/terminal-run.ts";
import { AgentHome, type AgentProcess, eventually, networkName, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

describeWith("an operator at the socket of an agent with a kernel bridge", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let home: AgentHome;
  let agent: AgentProcess;
  let sandbox: NetworkSandbox;
  const results: ReturnType<typeof resultOf>[] = [];

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-op-"));
    home = stack.use(new AgentHome({ nodes: undefined }));
    agent = await home.start({ PIPETTE_NODE_NAME: "here" });
    for (const [id, name] of [
      ["s1", "web"],
      ["s2", "db"],
    ] as const)
      results.push(await add(id, name));
  });
  afterAll(() => stack.disposeAsync());

  async function add(id: string, name: string): Promise<ReturnType<typeof resultOf>> {
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=u-${name}`;
    return resultOf(await home.cmd("cmdAdd", id, { netns: await sandbox.addPod(id), args }));
  }
  const get = (...args: string[]): Promise<TerminalRun> =>
    runAt("pipette get", getCommand, [...args, "--socket", home.socket]);
  const json = async (...args: string[]) => JSON.parse((await get(...args, "-o", "json")).stdout);

  test("pods are there with what the runtime was told of them", async () => {
    const { node, pods } = await json("pods");
    expect(node).toMatch(/^[a-z0-9]/);
    expect(pods).toHaveLength(2);
    const [db, web] = pods;
    expect(db.podName).toBe("db");
    const [first] = results;
    const inPod = first?.interfaces.find(({ sandbox: path }) => path !== undefined);
    const onNode = first?.interfaces.find(({ sandbox: path }) => path === undefined);
    expect(web).toMatchObject({
      ...{ podNamespace: "shop", podName: "web", podUid: "u-web", network: networkName, containerId: "s1" },
      ...{ ifname: "eth0", ownLease: true, mac: inPod?.mac, port: expect.any(Number) },
      addresses: first?.ips.map(({ address }) => address),
    });
    expect(first?.interfaces.map(({ name }) => name)).toContain(web.hostIfname);
    expect(onNode).toBeDefined();
  });

  test("as a table, a line for each, of a namespace or one by its name", async () => {
    const table = await get("pods");
    expect(table).toMatchObject({ status: 0, stderr: "" });
    const lines = table.stdout.trimEnd().split("\n");
    expect(lines[0]?.split(/ +/)).toEqual(["POD", "ADDRESSES", "INTERFACE", "PORT", "MAC", "NETWORK"]);
    expect(lines.map((line) => line.split(" ")[0])).toEqual(["POD", "shop/db", "shop/web"]);
    expect((await get("pods", "-n", "shop")).stdout).toBe(table.stdout);
    expect((await get("pods", "web", "-n", "shop")).stdout.split("\n")).toHaveLength(3);
    expect((await get("pods", "-n", "none")).stdout).toBe("No pods\n");
    expect(await get("pods", "shop/gone")).toEqual({ status: 3, stdout: "No pods\n", stderr: "" });
    expect((await get("pods", "-o", "wide")).stdout).toContain("SANDBOX");
  });

  test("leases and addresses agree with the pods", async () => {
    const { leases } = await json("leases", "shop/web");
    expect(leases.map(({ address }: { address: string }) => address)).toEqual(
      results[0]?.ips.map(({ address }) => address),
    );
    const { pools } = await json("addresses");
    expect(pools.map(({ allocated }: { allocated: number }) => allocated)).toEqual([2, 2]);
    expect(pools[0].strips[0].cells).toMatch(/^g?a/);
    expect((await get("addresses")).stdout).toContain("10.78.0.1-10.78.255.254");
  });

  test("the calls that made them are there, with their parts", async () => {
    const { calls } = await json("calls", "shop/web");
    expect(calls).toMatchObject([{ verb: "ADD", podName: "web", containerId: "s1", code: 0 }]);
    expect(calls[0].phases.map(({ phase }: { phase: string }) => phase)).toContain("ipam");
    expect((await get("calls")).stdout).toMatch(/^AGO +VERB +POD +TOOK +CODE +ERROR\n.*ADD +shop\/db/);
  });

  test.each(["--inject", "--live"])(
    "a trace with %s says that nobody follows packets, and what to use instead",
    async (how) => {
      const run = await runAt("pipette trace", traceCommand, ["shop/web", "shop/db", how, "--socket", home.socket]);
      expect([run.status, run.stdout]).toEqual([2, ""]);
      expect(run.stderr).toMatch(/the data path "bridge" of node "here" follows no packets, wanted one with "ovs"; /);
      expect(run.stderr).toContain('"pipette policy why FROM TO --port PORT" tells of policies');
      expect(run.stderr.trimEnd().split("\n")).toHaveLength(1);
    },
  );

  test("a trace by the switch says the same", async () => {
    const run = await runAt("pipette trace", traceCommand, ["shop/web", "shop/db", "--config", home.configFile]);
    expect([run.status, run.stdout, run.stderr]).toEqual([
      1,
      "",
      expect.stringContaining('"pipette policy why FROM TO'),
    ]);
  });

  test("what is not there is empty, and said", async () => {
    expect((await get("services")).stdout).toBe("No services\n");
    expect((await get("policies")).stdout).toBe("No isolated pods\n");
    expect(await json("peers")).toMatchObject({ registry: "", peers: [] });
    expect(await json("nodes")).toMatchObject({ nodes: [{ addresses: [] }] });
    const flows = await get("flows");
    expect([flows.status, flows.stdout]).toEqual([2, ""]);
    expect(flows.stderr).toMatch(/^Cannot show flows: the data path "bridge" of node ".*" has no flows/);
  });

  test("findings end with 1 where there are some", async () => {
    chmodSync(join(home.dataDir, "leases.db"), 0o666);
    const { status, stdout, stderr } = await get("findings", "-o", "json");
    expect([status, stderr]).toEqual([1, ""]);
    expect(JSON.parse(stdout).findings).toContainEqual({
      ...{ severity: "warning", code: "open-to-others", repairable: true },
      ...{ what: expect.stringContaining("leases.db"), why: expect.any(String), todo: expect.any(String) },
    });
    expect((await get("findings")).stdout).toMatch(/^SEVERITY +CODE +WHAT +DO\nwarning +open-to-others/);
  });

  test("what is logged changes, and the log says so", async () => {
    const level = (...args: string[]): Promise<TerminalRun> =>
      runAt("pipette log-level", logLevelCommand, [...args, "--socket", home.socket]);
    expect((await level()).stdout).toMatch(/^\S+ +info\n$/);
    expect((await level("debug")).stdout).toMatch(/^\S+ +debug\n$/);
    await agent.logged(({ message, to }) => message === "the log level changes" && to === "debug");
    await eventually(async () => (await json("node")).logLevel === "debug", "the level in the document");
    expect((await level("loud")).status).toBe(2);
  });

  test("YAML says the same as JSON", async () => {
    const { stdout } = await get("pods", "-o", "yaml");
    expect(Bun.YAML.parse(stdout)).toEqual(await json("pods"));
  });

  test("a watch hears of a pod that comes", async () => {
    const source = stack.use(new SocketSource(home.socket));
    const signal = AbortSignal.timeout(60_000);
    const [node = ""] = await source.nodes(signal);
    const first = await source.get(node, { kind: "pods" }, signal);
    const waiting = source.get(node, { kind: "pods", ifNotRevision: first.revision, waitMs: 20_000 }, signal);
    await add("s3", "late");
    const next = await waiting;
    expect(next.t === "document" && next.document.pods.map(({ podName }) => podName)).toEqual(["db", "late", "web"]);
    // It is nothing that anybody has to wait for.
    const node1 = await source.get(node, { kind: "node" }, signal);
    expect(node1.t === "document" && node1.document.callsInFlight).toBe(0);
  });

  test("a stop does not wait for those who watch, and who asks then is told", async () => {
    const source = stack.use(new SocketSource(home.socket));
    const signal = AbortSignal.timeout(60_000);
    const [node = ""] = await source.nodes(signal);
    const first = await source.get(node, { kind: "leases" }, signal);
    const waiting = source.get(node, { kind: "leases", ifNotRevision: first.revision, waitMs: 20_000 }, signal);
    waiting.catch(() => undefined);
    expect(await agent.end()).toBe(0);
    expect(agent.lines.map(({ message }) => message)).not.toContain("calls were cut off");
    const gone = await get("pods");
    expect([gone.status, gone.stdout]).toEqual([2, ""]);
    expect(gone.stderr).toContain(`nobody serves "${home.socket}", wanted a running "pipette agent"`);
  });
});
