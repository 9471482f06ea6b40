import { existsSync, readFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NodeInMemory } from "../windows-host/node-in-memory.ts";
import { deleteHnsNetwork, makeHnsNetwork } from "../windows-host/node-state.ts";
import { anotherRelease } from "./service-stand-in.ts";
import { describeWine } from "./wine/describe-wine.ts";
import { executables, onDriveZ } from "./wine/prefix.ts";
import type { Program } from "./wine/program.ts";

const bin = "C:\\Program Files\\containerd\\cni\\bin";
const conflistPath = "C:\\Program Files\\containerd\\cni\\conf\\10-pipette.conflist";
const whole = "C:\\Program Files\\Pipette\\pipette.exe";
const dataDir = "C:\\ProgramData\\pipette";

describeWine("the life of an installation on Windows: the agent as a service, pods, an upgrade", (wine) => {
  /** Adapters, addresses and routes, as PowerShell shows and changes them. */
  const host = new NodeInMemory();
  let companion: Program;
  let earlier: string;
  const current = `${executables}/pipette.exe`;

  beforeAll(async () => {
    const { hns, commands } = wine.stubs;
    hns.store.adapters.add("Ethernet0");
    commands.answerWith = async ({ script }) => {
      followHns();
      const { stdout, stderr, failure } = await host.execute(script);
      return { status: failure === "" ? 0 : 1, stdout, stderr };
    };
    earlier = join(dirname(wine.prefix.directory), "earlier.exe");
    anotherRelease(current, earlier);
    // Wine ends its services when the last other program has ended.
    companion = wine.prefix.start("cmd", { args: ["/c", "pause"], stdin: new Uint8Array(0), timeoutMs: 600_000 });
  });
  afterAll(async () => {
    await companion?.[Symbol.asyncDispose]();
  });

  /** A switch and its adapter come and go with their HNS network. */
  function followHns(): void {
    const names = [...wine.stubs.hns.store.networks.values()].map((network) => String(network["Name"]));
    const switches = host.state.switches.map((entry) => String(entry["Name"]));
    for (const name of names) if (!switches.includes(name)) makeHnsNetwork(host.state, name, true);
    for (const name of switches) if (!names.includes(name)) deleteHnsNetwork(host.state, name, true);
  }
  const endpoints = (): readonly object[] => [...wine.stubs.hns.store.endpoints.values()];

  const run = async (...args: readonly string[]): Promise<string> => {
    const { status, stdout, stderr } = await wine.prefix.run(current, { args, timeoutMs: 120_000 });
    if (status !== 0) throw new Error(`${stdout}${stderr}${existsSync(log()) ? readFileSync(log(), "utf8") : ""}`);
    return stdout;
  };
  const log = (): string => wine.prefix.unixPath(`${dataDir}\\agent.log`);
  const messages = (): unknown[] =>
    readFileSync(log(), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { message: unknown }).message);

  /** As a runtime calls, by the configuration that it reads. */
  async function plugin(verb: "ADD" | "DEL", containerId: string, netns: string): Promise<string> {
    const list = JSON.parse(readFileSync(wine.prefix.unixPath(conflistPath), "utf8"));
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: bin,
    };
    const stdin = JSON.stringify({ cniVersion: list.cniVersion, name: list.name, ...list.plugins[0] });
    const ended = await wine.prefix.run(wine.prefix.unixPath(`${bin}\\pipette.exe`), { env, stdin });
    if (ended.status !== 0) throw new Error(`${ended.stdout}${ended.stderr}`);
    return ended.stdout;
  }

  const ipsOf = (result: string): unknown => JSON.parse(result).ips;
  const writing = (): string[] =>
    wine.stubs.hns.calls.map(({ fn }) => fn).filter((fn) => /Create|Modify|Delete/.test(fn));

  test("the runtime's file comes when the service serves; pods outlive the upgrade untouched; the node is left clean", async () => {
    const place = ["--subnet", "10.9.0.0/24", "--node-address", "192.168.1.5", "--bridge", "br-int"];
    // As releases did it that had no small program.
    await run("install", "--from", onDriveZ(earlier), "--no-libexec", ...place);
    expect(existsSync(wine.prefix.unixPath(conflistPath))).toBe(true);
    const namespaces = [wine.stubs.hns.newNamespace(), wine.stubs.hns.newNamespace()];
    const added = [await plugin("ADD", "a", namespaces[0] ?? ""), await plugin("ADD", "b", namespaces[1] ?? "")];
    expect(ipsOf(await plugin("ADD", "a-app", "container:a"))).toEqual(ipsOf(added[0] ?? ""));
    const standing = JSON.stringify(endpoints());
    const calls = writing().length;

    const said = await run("install");
    expect(said).toMatch(/^replace .*\\pipette\.exe +the running one goes on as ".*\.old-[0-9a-f]{12}-1"/m);
    expect(said).toMatch(/^restart +pipette-agent +until it serves$/m);
    expect(messages().filter((message) => message === "ready" || message === "stopped")).toEqual([
      "ready",
      "stopped",
      "ready",
    ]);
    expect([JSON.stringify(endpoints()), writing().length]).toEqual([standing, calls]);

    const file = (path: string): Buffer => readFileSync(wine.prefix.unixPath(path));
    expect(file(`${bin}\\pipette.exe`).equals(readFileSync(`${executables}/forward.exe`))).toBe(true);
    expect(file(whole).equals(readFileSync(current))).toBe(true);
    const key = "HKLM\\System\\CurrentControlSet\\Services\\pipette-agent";
    const { stdout } = await wine.prefix.run("reg", { args: ["query", key, "/v", "ImagePath"] });
    expect(stdout).toContain(`"${whole}" agent`);
    // What the agent answers needs no whole program beside it.
    const [at, away] = [whole, `${whole}.away`].map((path) => wine.prefix.unixPath(path));
    renameSync(at ?? "", away ?? "");
    expect(await plugin("ADD", "a", namespaces[0] ?? "")).toBe(added[0]);
    renameSync(away ?? "", at ?? "");

    expect(await plugin("ADD", "a", namespaces[0] ?? "")).toBe(added[0]);
    expect(ipsOf(await plugin("ADD", "b-app", "container:b"))).toEqual(ipsOf(added[1] ?? ""));
    for (const [id, netns] of [
      ["a-app", "container:a"],
      ["a", namespaces[0] ?? ""],
    ] as const)
      await plugin("DEL", id, netns);
    expect(endpoints()).toHaveLength(1);
    const refused = await wine.prefix.run(current, { args: ["uninstall"] });
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("1 pod of this node has an address")]);

    await plugin("DEL", "b", namespaces[1] ?? "");
    const removed = await run("uninstall", "--purge");
    expect(removed.split("\n")[1]).toMatch(/^remove +.*10-pipette\.conflist/);
    expect([endpoints(), [...wine.stubs.hns.store.networks.values()], host.state.nats]).toEqual([[], [], []]);
    for (const path of [conflistPath, dataDir, `${bin}\\pipette.exe`, whole])
      expect([path, existsSync(wine.prefix.unixPath(path))]).toEqual([path, false]);
    expect(wine.stubs.hns.handles.list()).toEqual([]);
  }, 240_000);
});
