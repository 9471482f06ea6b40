import { chmodSync, existsSync, mkdirSync, statSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { doctorCommand } from "../../agent/commands/doctor/doctor-command.ts";
import { examine } from "../../agent/commands/doctor/examine.ts";
import { repair } from "../../agent/commands/doctor/repair.ts";
import { parseRuntimeList, type RuntimeList } from "../../agent/commands/doctor/runtime-list.ts";
import { singleLookFindings } from "../../agent/commands/doctor/single-look-findings.ts";
import type { AgentConfig } from "../../agent/config/agent-config.ts";
import { parseAgentConfig } from "../../agent/config/parse-agent-config.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { runAt } from "../fakes/terminal-run.ts";
import {
  AgentHome,
  type AgentProcess,
  bridgeName,
  eventually,
  networkName,
  resultOf,
} from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const ownerOf = (sandboxId: string): Owner => ({ network: networkName, sandboxId, ifname: "eth0" });
/** No call runs while most tests look: then a short pause tells as much as a long one. */
const pauseMs = 50;

describeWith("pipette doctor on a node that each test spoils in one place", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let agent: AgentProcess;
  let config: AgentConfig;
  let pods: string[] = [];

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dr-");
  });
  const start = async (changes: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    // Of what is lost the agent itself sees to after thirty looks: the doctor comes first, also on a busy machine.
    home = new AgentHome({ janitorIntervalMs: 5_000, ...changes });
    agent = await home.start();
    const parsed = parseAgentConfig(await readFile(home.configFile, "utf8"), home.configFile);
    if (parsed.t === "wrong") throw new Error(parsed.problems.join("\n"));
    config = parsed.config;
  };
  beforeEach(() => start());
  afterEach(async () => {
    await home[Symbol.asyncDispose]();
    for (const pod of pods) await sandbox.removePod(pod);
    pods = [];
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]();
  });

  const addPod = async (name: string): Promise<string> => {
    const path = await sandbox.addPod(name);
    pods.push(path);
    resultOf(await home.cmd("cmdAdd", name, { netns: path }));
    return path;
  };
  const command = (...args: readonly string[]) =>
    runAt("pipette doctor", doctorCommand, ["--config", home.configFile, ...args]);
  const codes = async (runtime?: RuntimeList): Promise<readonly string[]> => {
    const { findings } = await examine(config, { pauseMs, ...(runtime === undefined ? {} : { runtime }) });
    return findings.map(({ code }) => code).sort();
  };
  /** What a hand in the database does, which no process of ours would. */
  const sql = (text: string): void => {
    const db = new DatabaseSync(join(home.dataDir, "leases.db"));
    db.exec(text);
    db.close();
  };

  /** Found, changed by nobody until asked, repaired, found no more. */
  const findsAndRepairs = async (wanted: readonly string[], what: RegExp, runtime?: RuntimeList): Promise<void> => {
    const options = { pauseMs, ...(runtime === undefined ? {} : { runtime }) };
    const first = await examine(config, options);
    expect(first.findings.map(({ code }) => code).sort()).toEqual(wanted);
    expect(first.findings.map((finding) => finding.what).join("\n")).toMatch(what);
    const second = await examine(config, options);
    expect(second.findings).toEqual(first.findings);
    const outcomes = await repair(config, second.findings);
    expect(outcomes.flatMap(({ error }) => error ?? [])).toEqual([]);
    expect(outcomes.length).toBeGreaterThan(0);
    expect(await codes(runtime)).toEqual([]);
  };

  test("is content with pods that are in order, and says so with status 0", async () => {
    await addPod("a");
    await addPod("b");
    const text = await command();
    expect(text).toEqual({ status: 0, stdout: "4 leases, 2 interfaces of pods: all agree\n", stderr: "" });
    const json = await command("--json");
    expect(JSON.parse(json.stdout)).toEqual({ leases: 4, interfaces: 2, findings: [], repaired: [] });
  });

  test("a lease without its interface, by the command: what, whom it believes, what to do, done", async () => {
    await addPod("a");
    const pod = await addPod("b");
    await sandbox.pod(pod, "ip link del eth0");
    const told = await command();
    expect(told.status).toBe(1);
    expect(told.stdout).toMatch(/^error: "eth0" of "b" .* holds 10\.78\.0\.\d+, fd78::\w+ and has no interface\n/);
    expect(told.stdout).toContain("  believed: the kernel, which has none\n");
    expect(told.stdout).toContain("(--repair does it)");
    const repaired = await command("--repair", "--once");
    expect(repaired).toMatchObject({ status: 0, stdout: expect.stringContaining("let its addresses cool") });
    expect(await home.containers()).toEqual(["a"]);
    expect((await command()).status).toBe(0);
  });

  test("times that lie ahead, since the clock was set back, are a note: nothing disagrees, and nothing has to be done", async () => {
    await addPod("a");
    await addPod("b");
    await home.cmd("cmdDel", "b", { netns: "" });
    sql("UPDATE lease SET released_at_ms = released_at_ms + 86400000 WHERE sandbox_id = 'b'");
    const told = await command("--repair", "--once");
    expect(told).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^note: 2 leases .* with times that lie ahead/),
    });
    expect(told.stdout).toContain("given out all the same where nothing else is free");
  });

  test("a namespace that is gone took its interface with it", async () => {
    const pod = await addPod("a");
    await sandbox.removePod(pod);
    pods = [];
    // The kernel takes a namespace down behind our back.
    await eventually(async () => (await home.containers()).length === 0, "the interface to go");
    await findsAndRepairs(["lease-without-interface"], /"eth0" of "a"/);
  });

  test("an interface without its lease gets it back, and the pod keeps its network", async () => {
    const pod = await addPod("a");
    sql("DELETE FROM lease; DELETE FROM taken");
    await findsAndRepairs(["interface-without-lease"], /of "eth0" of "a".* stands without a lease/);
    using store = await home.store();
    expect(store.find(ownerOf("a"))).toHaveLength(2);
    expect(await sandbox.ping(pod, "10.78.0.1")).toBe(true);
  });

  test("a pod that the runtime does not know any more, once its list is young enough to tell", async () => {
    await addPod("a");
    await addPod("b");
    const list = (): RuntimeList => parseRuntimeList(JSON.stringify({ items: [{ id: "a" }] }), Date.now());
    expect(await codes(list())).toEqual(["unknown-to-runtime-yet"]);
    sql("UPDATE lease SET allocated_at_ms = allocated_at_ms - 3600000");
    await findsAndRepairs(["unknown-to-runtime"], /The runtime does not know "eth0" of "b"/, list());
    expect(await home.containers()).toEqual(["a"]);
    const exact = JSON.stringify([
      { containerID: "a", ifname: "eth0" },
      { containerID: "c", ifname: "eth0" },
    ]);
    expect(await codes(parseRuntimeList(exact, Date.now()))).toEqual(["pod-without-lease"]);
  });

  test("addresses that differ and addresses that are there twice are told, and left to a person", async () => {
    await addPod("a");
    const b = await addPod("b");
    using store = await home.store();
    const [lease] = store.find(ownerOf("a"));
    if (lease === undefined) throw new Error("a has no lease");
    await sandbox.pod(b, `ip addr add ${formatIp(lease.address.ip)}/16 dev eth0`);
    const { findings } = await examine(config, { pauseMs });
    expect(findings.map(({ code }) => code).sort()).toEqual(["address-differs", "address-twice"]);
    expect(await repair(config, findings)).toEqual([]);
    expect(await codes()).toEqual(["address-differs", "address-twice"]);
  });

  test("one address in two networks", async () => {
    await addPod("a");
    sql(`CREATE TEMP TABLE copy AS SELECT * FROM lease LIMIT 1;
      UPDATE copy SET network = 'other', sandbox_id = 'z', generation = 900;
      INSERT INTO lease SELECT * FROM copy;
      INSERT INTO taken SELECT network, address, address FROM copy;
      UPDATE mark SET value = '900' WHERE name = 'generation'`);
    expect(await codes()).toEqual(["address-twice"]);
  });

  test("interfaces that a killed agent was making or deleting", async () => {
    await sandbox.node("ip link add half0 type veth peer name half1");
    await sandbox.node("ip link add half2 type veth peer name half3");
    await sandbox.node(`ip link set half0 group ${0x70697001}`);
    await sandbox.node(`ip link set half2 group ${0x70697002}`);
    await findsAndRepairs(
      ["half-made-interface", "half-made-interface"],
      /"half0" is half made\n.*"half2" is given up/,
    );
  });

  test("what the database says of itself", async () => {
    await addPod("a");
    sql("DELETE FROM taken");
    await findsAndRepairs(["taken-run-missing", "taken-run-missing"], /./);
  });

  test("files left behind, and rights that let others in", async () => {
    const conflist = home.conflist;
    const [stray, young, lock] = [
      `${conflist}.4194305.tmp`,
      join(home.dataDir, `nodes.json.${process.pid}.tmp`),
      join(home.dataDir, "agent.log.lock"),
    ];
    for (const path of [stray, young, lock]) writeFileSync(path, "", { mode: 0o600 });
    utimesSync(lock, 0, 0);
    writeFileSync(join(dirname(conflist), "another.tmp"), "");
    chmodSync(home.dataDir, 0o777);
    chmodSync(join(home.dataDir, "leases.db"), 0o644);
    chmodSync(home.socket, 0o777);
    const open = ["open-to-others", "open-to-others", "open-to-others"];
    await findsAndRepairs([...open, "stale-lock", "stray-file"], /mode 0777, wanted 0755\n/);
    expect([existsSync(stray), existsSync(young), existsSync(lock)]).toEqual([false, true, false]);
    const modes = [home.dataDir, join(home.dataDir, "leases.db"), home.socket].map(
      (path) => statSync(path).mode & 0o777,
    );
    expect(modes).toEqual([0o755, 0o600, 0o700]);
    expect(existsSync(join(dirname(conflist), "another.tmp"))).toBe(true);
    // An agent's start takes them away by itself.
    const later = join(home.dataDir, "nodes.json.4194305.later.tmp");
    for (const path of [stray, later]) writeFileSync(path, "", { mode: 0o600 });
    await agent.end("SIGKILL");
    agent = await home.start();
    expect([existsSync(stray), existsSync(later)]).toEqual([false, false]);
  });

  test("a configuration of the runtime that is missing, changed, or comes after another's", async () => {
    writeFileSync(home.conflist, "{}");
    await findsAndRepairs(["conflist-differs"], /is not what agent.yaml makes of it/);
    const text = await readFile(home.conflist, "utf8");
    expect(text).toContain('"type": "pipette"');
    unlinkSync(home.conflist);
    await findsAndRepairs(["conflist-missing"], /is missing or cannot be read/);
    writeFileSync(join(dirname(home.conflist), "05-other.conflist"), "{}");
    expect(await codes()).toEqual(["not-first"]);
  });

  test("without an agent: what is in the way, and what the agent does at its start", async () => {
    const pod = await addPod("a");
    await agent.end("SIGKILL");
    await sandbox.pod(pod, "ip link del eth0");
    await sandbox.node(`ip link set ${bridgeName} down`);
    // What only the agent can do is not promised.
    expect((await command("--once")).stdout).not.toContain("--repair does it");
    const { status, stdout } = await command("--repair", "--once");
    expect(status).toBe(1);
    expect(stdout).not.toContain("repaired:");
    expect(stdout).toMatch(/"eth0" of "a" [\s\S]*? do: +start the agent first; then let the address cool;/);
    for (const wanted of [`The agent does not answer at "${home.socket}"`, `The bridge "${bridgeName}" is down`])
      expect(stdout).toContain(`error: ${wanted}`);
    await home.start();
    expect(await codes()).toEqual(["lease-without-interface"]);
  });

  test("forwarding that was turned off: the agent is told, and without it the doctor tells a remedy", async () => {
    await home[Symbol.asyncDispose]();
    await start({ janitorIntervalMs: 600_000 });
    await sandbox.node("sysctl -q -w net.ipv4.ip_forward=0");
    await agent.logged((line) => line["message"] === "repairing the data path");
    await expect.poll(() => codes(), { timeout: 10_000 }).toEqual([]);
    await agent.end("SIGKILL");
    await sandbox.node("sysctl -q -w net.ipv4.ip_forward=0");
    const { status, stdout } = await command("--once", "--repair");
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/do: +start the agent first; then have the agent turn it on again/),
    ]);
    expect(stdout).toContain("IPv4 forwarding is off");
    expect(stdout).not.toContain("repaired:");
  });

  test("the packet rules that somebody has deleted: the agent is told, and without it the doctor tells a remedy", async () => {
    await home[Symbol.asyncDispose]();
    const hidden = { name: networkName, subnets: ["10.78.0.0/16", "fd78::/64"], bridge: bridgeName, masquerade: true };
    await start({ janitorIntervalMs: 600_000, networks: [hidden] });
    await sandbox.node(`nft delete table inet pipette-${bridgeName}`);
    await agent.logged((line) => line["message"] === "repairing the data path");
    await expect.poll(() => codes(), { timeout: 10_000 }).toEqual([]);
    await agent.end("SIGKILL");
    await sandbox.node(`nft delete table inet pipette-${bridgeName}`);
    const { status, stdout } = await command("--once", "--repair");
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/do: +start the agent first; then have the agent set them up/),
    ]);
    expect(stdout).not.toContain("repaired:");
  });

  test("a pod whose interface was deleted by hand: what stays after the repair", async () => {
    const name = `cni-${crypto.randomUUID()}`;
    await sandbox.node(`ip netns add ${name}`);
    try {
      resultOf(await home.cmd("cmdAdd", "a", { netns: `/run/netns/${name}` }));
      expect(await codes()).toEqual([]);
      await sandbox.node(`ip -n ${name} link del eth0`);
      expect(await codes()).toEqual(["lease-without-interface", "namespace-without-interface"]);
      for (const args of [["--repair"], ["--repair"], []]) {
        const { status, stdout } = await command(...args, "--once");
        expect([status, stdout]).toEqual([
          1,
          expect.stringContaining(`namespace "/run/netns/${name}" of a sandbox has no`),
        ]);
        expect(stdout).toContain("  do:   remove the pod");
        expect(stdout).toMatch(/0 leases, 0 interfaces of pods: 0 errors, 1 warning, 0 notes\n$/);
      }
    } finally {
      await sandbox.node(`ip netns del ${name}`);
    }
    expect(await codes()).toEqual([]);
  });

  test("a plugin of the runtime's list that is not there: the status says it too, and keeps the node in service", async () => {
    await home[Symbol.asyncDispose]();
    await start({ cni: { plugins: [{ type: "pt-none" }] } });
    expect(await codes()).toEqual(["plugin-missing"]);
    expect((await home.status()).problems).toEqual([
      {
        code: 50,
        advisory: true,
        message: expect.stringContaining(`the plugin "pt-none" of "${home.conflist}" is not`),
      },
    ]);
    // A runtime hears nothing of it.
    expect((await home.call(nodeService.status, { network: networkName })).problems).toEqual([]);
  });

  test("pods whose packets do not fit the way out", async () => {
    await sandbox.node("ip link add way0 mtu 1400 type veth peer name way1");
    await sandbox.node("ip addr add 192.0.2.1/24 dev way0");
    await sandbox.node("ip link set way0 up");
    await sandbox.node("ip link set way1 up");
    await sandbox.node("ip route add default via 192.0.2.2");
    const { findings } = await examine(config, { pauseMs });
    await sandbox.node("ip link del way0");
    expect(findings.map(({ code, evidence }) => [code, evidence])).toEqual([["mtu", "1500 1400"]]);
    expect(await codes()).toEqual([]);
  });

  test("a registry of nodes that cannot be read, or does not have this one", async () => {
    const file = join(home.directory, "nodes.yaml");
    const registry = { type: "static", file } as const;
    const nodes = { name: "n1", addresses: [], probeIntervalMs: 0, registry } as const;
    const found = async (): Promise<readonly string[]> =>
      (await singleLookFindings({ ...config, nodes })).map(({ code }) => code);
    expect(await found()).toEqual(["registry-unreachable"]);
    const entry = (name: string) => ({ name, addresses: ["192.0.2.9"], subnets: ["10.78.1.0/24"] });
    writeFileSync(file, JSON.stringify({ nodes: [entry("n2")] }));
    expect(await found()).toEqual(["not-registered"]);
    writeFileSync(file, JSON.stringify({ nodes: [entry("n1")] }));
    expect(await found()).toEqual([]);
  });

  test("cannot look: status 2", async () => {
    const missing = await runAt("pipette doctor", doctorCommand, ["--config", "/nowhere/agent.yaml"]);
    expect(missing).toMatchObject({ status: 2, stderr: expect.stringContaining("/nowhere/agent.yaml") });
    mkdirSync(join(home.directory, "list"));
    const list = join(home.directory, "list", "pods.json");
    writeFileSync(list, '{"items":[{}]}');
    expect(await command("--runtime", list)).toMatchObject({ status: 2, stdout: "" });
  });
});
