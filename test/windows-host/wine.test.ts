import { execFileSync } from "node:child_process";
import { cpSync, existsSync, linkSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { describeWine } from "../windows/wine/describe-wine.ts";
import { executables } from "../windows/wine/prefix.ts";
import type { Ended } from "../windows/wine/program.ts";
import { freshNode, makeHnsNetwork, type NodeState } from "./node-state.ts";

const system = "C:\\windows\\system32\\WindowsPowerShell\\v1.0\\powershell.exe";
const program = "C:\\test\\program.exe";
/** What a switch, an adapter and a NetNat may be called, and PowerShell's reader would like to take apart. */
const hostile = ["it's $env:PATH $(exit) `n \u2018x\u2019 \u201a\u201b", '"a" & b | c; %PATH% 网络', "[br*]?'' {0}"];

describeWine("the node's set-up from the compiled program", (wine) => {
  const at = (path: string): string => wine.prefix.unixPath(path);
  const state = (): NodeState => JSON.parse(readFileSync(at("C:\\node\\state.json"), "utf8")) as NodeState;
  const put = (file: string, content: string): void => wine.prefix.write(`C:\\node\\${file}`, content);
  const agent = (what: string): Promise<Ended> => wine.prefix.run(at(program), { args: [what] });

  /** Ours in the place of Wine's own powershell.exe, which does nothing and says nothing. */
  function install(): void {
    if (existsSync(at(program))) return;
    wine.prefix.write(program, "");
    rmSync(at(program));
    const source = join(import.meta.dirname, "program.ts");
    const flags = ["build", "--compile", "--bytecode", "--format=esm", "--minify", "--target=bun-windows-x64"];
    execFileSync(process.execPath, [...flags, source, "--outfile", at(program)], { cwd: dirname(at(program)) });
    // A program of this place is Wine's own, unless it bears no mark of Wine's.
    cpSync(at(system), `${at(system)}.wine`);
    rmSync(at(system));
    linkSync(at(program), at(system));
  }

  beforeEach(() => {
    install();
    for (const file of ["fault.txt", "deadline.txt", "survived.txt"]) rmSync(at(`C:\\node\\${file}`), { force: true });
    rmSync(at("C:\\node\\windows-host"), { recursive: true, force: true });
    put("state.json", JSON.stringify(freshNode()));
    put("settings.json", "{}");
  });

  test("leads from a fresh node to one with pods and back, whatever things are called", async () => {
    const [bridgeName, natName, hnsNetwork] = hostile as [string, string, string];
    put("settings.json", JSON.stringify({ bridgeName, gatewayInterface: bridgeName, natName, hnsNetwork }));
    const prepared = await agent("prepare");
    expect(prepared).toMatchObject({ status: 0, stderr: "" });
    expect(JSON.parse(prepared.stdout)).toEqual({
      alias: "Ethernet0",
      index: 7,
      mac: "00-15-5D-01-02-03",
      prefixLength: 24,
    });
    const node = state();
    makeHnsNetwork(node, hnsNetwork, true);
    put("state.json", JSON.stringify(node));
    expect(await agent("setUp")).toMatchObject({ status: 0, stderr: "" });
    const up = state();
    expect(up.adapters[1]?.["Name"]).toBe(bridgeName);
    expect(up.vmAdapters[0]?.["Name"]).toBe(bridgeName);
    expect(up.nats).toEqual([{ Name: natName, InternalIPInterfaceAddressPrefix: "10.10.1.0/24" }]);
    expect(up.extensions.map((entry) => entry["Enabled"])).toEqual([true, true]);
    expect(up.interfaces[2]).toMatchObject({ Forwarding: "Enabled", NlMtu: 1450 });
    expect(up.addresses.find((entry) => entry["IPAddress"] === "192.168.1.5")?.["InterfaceIndex"]).toBe(21);
    expect(up.routes.filter((route) => route["PolicyStore"] === "ActiveStore")).toHaveLength(3);

    expect(await agent("cleanUp")).toMatchObject({ status: 0, stderr: "" });
    const down = state();
    const sorted = (rows: NodeState["routes"]): string[] =>
      rows.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort();
    expect(sorted(down.addresses)).toEqual(sorted(freshNode().addresses));
    expect([down.nats, down.switches, down.adapters.length]).toEqual([[], [], 1]);
    expect(existsSync(at("C:\\node\\windows-host"))).toBe(false);
  });

  describe("pipette.exe agent --cleanup", () => {
    const cleanUp = (...more: string[]): Promise<Ended> =>
      wine.prefix.run(`${executables}/pipette.exe`, {
        args: ["agent", "--cleanup", "--config", "C:\\node\\agent.yaml", ...more],
      });

    beforeEach(() => {
      const network = "{ name: pods, subnets: [10.10.1.0/24], bridge: br-int, hns: { nodeAddress: 192.168.1.5 } }";
      put("agent.yaml", `dataDir: C:\\node\ndataPath: hns\nnetworks:\n  - ${network}\n`);
    });

    test("takes back what is on record, says so, and has nothing to do the second time", async () => {
      const node = freshNode();
      // Somebody else's network, which stays.
      makeHnsNetwork(node, "pipette", true);
      put("state.json", JSON.stringify(node));
      expect(await agent("setUp")).toMatchObject({ status: 0, stderr: "" });
      expect(state().nats).toHaveLength(1);
      const first = await cleanUp("--json");
      expect(first).toMatchObject({ status: 0, stderr: "" });
      const { changes } = JSON.parse(first.stdout) as { changes: { step: string; did: string }[] };
      expect([changes[0], changes.length]).toEqual([
        { step: "nat", what: 'NetNat "pipette-nat" for 10.10.1.0/24', did: "undone" },
        10,
      ]);
      expect(state()).toEqual(node);
      expect(await cleanUp()).toMatchObject({
        status: 0,
        stdout: "nothing on record: there is nothing to clean up\n",
        stderr: "",
      });
    });

    test("touches nothing while an agent runs", async () => {
      await agent("setUp");
      const before = state();
      await using holder = wine.prefix.start(at(program), { args: ["hold"] });
      await holder.saying("ours");
      const ended = await cleanUp();
      expect(ended.status).toBe(1);
      expect(ended.stderr).toContain('Cannot start the clean-up: data directory "C:\\node" is held by process');
      expect(state()).toEqual(before);
    });

    test("without HNS keeps the network on record, and does the rest", async () => {
      for (const library of ["computenetwork", "vmcompute"])
        rmSync(at(`C:\\windows\\system32\\${library}.dll`), { force: true });
      await agent("prepare");
      const ended = await cleanUp();
      expect(ended.status).toBe(1);
      expect(ended.stdout).toMatch(/hns network +HNS network "pipette" +failed/);
      expect(existsSync(at("C:\\node\\windows-host\\pipette.json"))).toBe(true);
    });
  });

  describe("believes nothing but a whole answer", () => {
    test("not Wine's own PowerShell, which ends with 0 and has done nothing", async () => {
      rmSync(at(system));
      cpSync(`${at(system)}.wine`, at(system));
      try {
        const ended = await agent("prepare");
        expect(ended.status).toBe(1);
        expect(ended.stderr).toContain("Cannot find the node's adapter: PowerShell answered nothing");
      } finally {
        rmSync(at(system));
        linkSync(at(program), at(system));
      }
    });

    test.each([
      ["silent", "PowerShell answered nothing"],
      ["half", "PowerShell answered half an answer"],
      ["status", "PowerShell answered a whole answer; its exit status was 7"],
    ])("not one that is %s", async (fault, message) => {
      put("fault.txt", fault);
      const ended = await agent("prepare");
      expect(ended.status).toBe(1);
      expect(ended.stderr).toContain(message);
    });

    test("not one that hangs: it is killed at the deadline", async () => {
      put("fault.txt", "hang");
      put("deadline.txt", "1500");
      const ended = await agent("prepare");
      expect(ended.status).toBe(1);
      expect(ended.stderr).toContain("it had not ended after 1500 ms and was killed");
      await Bun.sleep(2500);
      expect(existsSync(at("C:\\node\\survived.txt"))).toBe(false);
    });
  });

  test("says what a cmdlet said, and where nothing is PowerShell", async () => {
    put(
      "settings.json",
      JSON.stringify({ bridgeName: "", gatewayInterface: "Ethernet0", mtu: undefined, ovsExtension: true }),
    );
    const ended = await agent("setUp");
    expect(ended.stderr).toContain('Cannot enable the Open vSwitch extension: switch "pipette" has no extension');
    rmSync(at(system));
    try {
      expect((await agent("prepare")).stderr).toMatch(
        /Cannot find the node's adapter: PowerShell answered nothing; there is no "C:.*powershell\.exe"/,
      );
    } finally {
      linkSync(at(program), at(system));
    }
  });
});
