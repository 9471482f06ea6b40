import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { whyCommand } from "../../agent/commands/why/why-command.ts";
import { runAt } from "../fakes/terminal-run.ts";
import {
  AgentHome,
  type AgentProcess,
  bridgeName,
  type CmdOptions,
  eventually,
  networkName,
} from "../support/agent-process.ts";
import { startCommand } from "../support/cni-call.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { ownProgram } from "../support/own-program.ts";
import { describeWith } from "../support/requires.ts";

interface Told {
  readonly status: number;
  readonly result: string;
  readonly code: string;
  readonly cause: string;
  readonly evidence: readonly string[];
  readonly todo: readonly string[];
}

describeWith("why a pod has no network, with the cause planted", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let running: AgentProcess | undefined;
  let count = 0;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-why-");
  });
  const start = async (changes: Readonly<Record<string, unknown>> = {}, prefix: readonly string[] = []) => {
    // Nothing mends what is planted before somebody asks.
    home = new AgentHome({ janitorIntervalMs: 60_000, ...changes }, undefined, prefix);
    running = await home.start();
    return running;
  };
  afterEach(async () => {
    running = undefined;
    await home?.[Symbol.asyncDispose]();
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => sandbox?.[Symbol.asyncDispose]());

  const add = async (name: string, options: CmdOptions = {}) => {
    const id = `s${++count}`;
    const netns = options.netns ?? (await sandbox.addPod(id));
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=u-${name}`;
    return { id, netns, answer: await home.cmd("cmdAdd", id, { args, ...options, netns }) };
  };
  const why = async (name: string | undefined, ...more: readonly string[]): Promise<Told> => {
    const log = join(home.directory, "agent.log");
    writeFileSync(log, running?.stderr ?? "");
    const words = [...(name === undefined ? [] : [`shop/${name}`]), "--json", "--socket", home.socket, "--log", log];
    const { status, stdout, stderr } = await runAt(
      "pipette why",
      whyCommand,
      [...words, "--config", home.configFile, ...more],
      {
        env: { HOME: home.directory },
      },
    );
    expect(stderr).toBe("");
    return { status, ...JSON.parse(stdout) };
  };
  /** What the plugin itself says, as a pod's event has it. */
  const plugin = async (conf: object, verb = "ADD"): Promise<string> => {
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: "c9",
      CNI_NETNS: "/run/netns/none",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/",
    };
    const whole = {
      cniVersion: "1.0.0",
      name: networkName,
      type: "pipette",
      socket: home.socket,
      addTimeoutMs: 1_000,
      ...conf,
    };
    const { stdout } = await startCommand(ownProgram, env, JSON.stringify(whole)).ended;
    const { msg, details = "" } = JSON.parse(stdout) as { msg: string; details?: string };
    return `plugin type="pipette" failed (add): ${msg}; ${details}`;
  };

  test("its agent's last calls tell, each with what to do; a later success is the end of it", async () => {
    await start({ networks: [{ name: networkName, subnets: ["10.78.0.0/29"], bridge: bridgeName }] });
    const taken = await sandbox.addPod("taken");
    await sandbox.pod(taken, "ip link add eth0 type veth peer name other");
    await add("named", { netns: taken });
    expect(await why("named")).toMatchObject({
      status: 1,
      code: "name-taken",
      todo: [expect.stringContaining("remove")],
    });

    const mac = "02:00:5e:10:00:01";
    const conf = { runtimeConfig: { mac } };
    expect((await add("first", { conf })).answer.error).toBeUndefined();
    await add("second", { conf });
    expect(await why("second")).toMatchObject({ status: 1, code: "mac-taken" });
    expect(await why("first")).toMatchObject({ status: 0, result: "fine", cause: expect.stringContaining("10.78.0.") });

    await add("elsewhere", { conf: { name: "other" } });
    expect(await why("elsewhere")).toMatchObject({ status: 1, code: "network-unknown" });
    await add("stored", { conf: { ipam: { type: "pipette-ipam", dataDir: "/elsewhere" } } });
    expect(await why("stored")).toMatchObject({ status: 1, code: "data-directories-differ" });

    for (const name of ["a", "b", "c", "d", "e"]) await add(name);
    const full = await add("late");
    expect(full.answer.error?.code).toBe(101);
    for (let i = 0; i < 3; i++) await add("late");
    const late = await why("late");
    expect(late).toMatchObject({
      ...{ status: 1, code: "pool-exhausted" },
      cause: "shop/late has no network: no address of its network is free on the node",
    });
    expect(late.evidence[0]).toMatch(
      /^the agent, of its ADD in "ipam" \(code 101\), \d+ s ago, 4 times: .* has 0 of 5 addresses free/,
    );
    // An agent makes its documents anew some times a second.
    const counted = /^addresses: of 5 in .* of pods 5 are allocated/;
    await eventually(async () => (await why("late")).evidence.some((line) => counted.test(line)), "the addresses");
    await eventually(async () => (await why(undefined)).code === "pool-exhausted", "the node's own word of it");
    expect(await why(undefined)).toMatchObject({ status: 1, code: "pool-exhausted" });
    expect(await why("nobody")).toMatchObject({ status: 1 });
  });

  test("an agent that is frozen, gone, or of another user's", async () => {
    const agent = await start();
    expect(await why(undefined)).toMatchObject({ status: 0, result: "fine" });
    expect(await why("unknown")).toMatchObject({ status: 1, code: "no-call" });
    {
      using _ = await agent.held();
      expect(await why("cart")).toMatchObject({ status: 1, code: "agent-hangs" });
    }
    await agent.end();
    expect(await why("cart")).toMatchObject({
      ...{ status: 1, code: "agent-away", todo: [expect.stringContaining("pipette-agent"), expect.anything()] },
    });
    const event = await plugin({ ipam: { type: "pipette-ipam", dataDir: home.dataDir, subnet: "10.78.0.0/16" } });
    expect(await why("cart", "--event", event)).toMatchObject({
      code: "agent-away",
      evidence: [expect.stringContaining("as you say")],
    });
    const refused = await plugin({ logFile: "/etc/passwd" });
    expect(await why("cart", "--event", refused)).toMatchObject({ status: 1, code: "log-file-refused" });
  });

  test("an agent that does not begin: its configuration, its database, its directory", async () => {
    const agent = await start();
    await agent.end();
    chmodSync(home.configFile, 0o666);
    running = home.spawn();
    expect(await running.ended()).not.toBe(0);
    expect(await why(undefined)).toMatchObject({ status: 1, code: "configuration-open-to-others" });
    chmodSync(home.configFile, 0o600);

    chmodSync(home.dataDir, 0o777);
    running = home.spawn();
    expect(await running.ended()).not.toBe(0);
    expect(await why("cart")).toMatchObject({ status: 1, code: "database-open-to-others" });
    chmodSync(home.dataDir, 0o700);
  });

  test("an agent that ended because its socket or its database was taken away", async () => {
    let agent = await start({ janitorIntervalMs: 200 });
    rmSync(home.socket);
    await agent.ended();
    expect(await why("cart")).toMatchObject({ status: 1, code: "socket-gone" });
    running = await home.start();
    agent = running;
    for (const name of ["leases.db", "leases.db-wal", "leases.db-shm"])
      rmSync(join(home.dataDir, name), { force: true });
    await agent.ended();
    expect(await why("cart")).toMatchObject({ status: 1, code: "database-gone" });
  });

  test("a directory that is mounted read-only", async () => {
    home = new AgentHome();
    const place = join(home.directory, "read-only");
    mkdirSync(place);
    const script = `mount -t tmpfs -o ro none ${place} && exec "$@"`;
    const prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"];
    await home[Symbol.asyncDispose]();
    home = new AgentHome({}, undefined, prefix);
    mkdirSync(place, { recursive: true });
    home.change({ dataDir: join(place, "data") });
    running = home.spawn();
    expect(await running.ended()).not.toBe(0);
    expect(await why("cart")).toMatchObject({ status: 1, code: "unit-forbids-directory" });
    rmSync(join(place, ".."), { recursive: true, force: true });
  });

  test("a node that waits to join, whose registry does not know it", async () => {
    home = new AgentHome();
    const file = join(home.directory, "nodes.yaml");
    writeFileSync(file, "nodes: []\n", { mode: 0o600 });
    home.change({
      networks: [{ name: networkName, bridge: bridgeName }],
      nodes: { name: "here", addresses: ["10.99.0.1"], registry: { type: "static", file } },
    });
    running = home.spawn();
    await running.logged(({ message }) => message === "serving without a data path until the node has joined");
    expect(await why("cart")).toMatchObject({ status: 1, code: "waits-to-join" });
    expect(await why(undefined)).toMatchObject({ status: 1, code: "waits-to-join" });
  });

  test("a late DEL that met the sandbox again is told, and no cause", async () => {
    await start();
    const { id } = await add("again");
    const { callUnary } = await import("../../shared/rpc/call.ts");
    const { callTimes, cniService } = await import("../../shared/proto/services.ts");
    const args = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=again";
    const conf = new TextEncoder().encode(JSON.stringify({ cniVersion: "1.0.0", name: networkName, type: "pipette" }));
    const cniArgs = { containerId: id, netns: "", ifname: "eth0", args, path: "", networkConfiguration: conf };
    const options = { timeoutMs: 10_000, metadata: { [callTimes.startedMs]: "1" } };
    const { error } = await callUnary(home.socket, cniService.cmdDel, { cniArgs }, options);
    expect(error?.code).toBe(104);
    expect(await why("again")).toMatchObject({
      ...{ status: 0, result: "fine" },
      evidence: expect.arrayContaining([expect.stringContaining("it has been added again since the DEL began")]),
    });
  });
});
