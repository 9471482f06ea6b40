import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, constants as fs, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables, resultOf, run, variables } from "../conformance/plugin.ts";
import { stranger } from "../hostile/planted.ts";
import { AgentHome, type AgentProcess } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";

describeWith("a user who is not root, while an agent runs", ["root", "linux"], () => {
  let home: AgentHome;
  let agent: AgentProcess;
  let pod: NetworkNamespace;
  let pipette: string;

  const conf = () => ({
    cniVersion: "1.1.0",
    name: "pods",
    type: "pipette",
    socket: home.socket,
    dataDir: home.dataDir,
    ipam: { type: "pipette-ipam", dataDir: home.dataDir, subnet: "10.9.0.0/24" },
  });
  /** What he types, or a runtime of his. */
  function typed(args: readonly string[], env: Readonly<Record<string, string>> = {}, input = "") {
    const as = [`--reuid=${stranger}`, `--regid=${stranger}`, "--clear-groups", "--", pipette, ...args];
    const { status, stdout, stderr } = spawnSync("setpriv", as, { encoding: "utf8", env, input, timeout: 30_000 });
    return { status, stdout, stderr };
  }

  beforeAll(async () => {
    compileExecutables();
    home = new AgentHome({ logLevel: "debug" }, executables, ["unshare", "--net"]);
    chmodSync(home.directory, 0o755);
    // Where the repository lies he may not be able to look.
    pipette = join(home.directory, "pipette");
    copyFileSync(join(executables, "pipette"), pipette, fs.COPYFILE_FICLONE);
    agent = await home.start();
    pod = NetworkNamespace.create();
    const { ipam: _, ...plain } = conf();
    resultOf(await run({ env: variables("ADD", { CNI_NETNS: pod.path }), stdin: plain }));
  });
  afterAll(async () => {
    pod[Symbol.dispose]();
    await agent.end();
    await home[Symbol.asyncDispose]();
  });

  test("is told by the status that root is needed, not that no agent runs", () => {
    expect(typed(["status", "--socket", home.socket])).toEqual({
      status: 1,
      stdout: "",
      stderr: `Cannot reach the agent: this user may not connect to "${home.socket}" (EACCES), wanted root\n`,
    });
  });

  test("is told by why that root is needed, and neither that the pod is well nor that no agent runs", () => {
    const words = ["why", "shop/cart", "--json", "--socket", home.socket, "--config", home.configFile];
    const { status, stdout } = typed(words, { HOME: home.directory });
    expect([status, JSON.parse(stdout)]).toMatchObject([
      2,
      {
        ...{ result: "unknown", code: "not-root", todo: [expect.stringContaining("ask again as root")] },
        evidence: [expect.stringContaining("this user may not connect")],
      },
    ]);
  });

  test.each([
    ["list", 1],
    ["stats", 1],
    ["check", 1],
    ["release 10.9.0.2", 1],
    ["gc --network pods --keep -", 1],
  ])("is told by pipette ipam %s whose the database is", (line, status) => {
    const ended = typed(["ipam", ...line.split(" "), "--data-dir", home.dataDir], {}, "[]");
    expect([ended.status, ended.stdout]).toEqual([status, ""]);
    expect(ended.stderr).toContain("this user may not open it (EACCES), wanted root");
    expect(ended.stderr).not.toContain("symbolic link");
  });

  test("is told by allocate, before it looks for a settings file", () => {
    const { status, stderr } = typed(
      ["ipam", "allocate", "--conf", "-", "--container", "c2"],
      {},
      JSON.stringify(conf()),
    );
    expect([status, stderr]).toEqual([1, expect.stringContaining("this user may not open it (EACCES), wanted root\n")]);
  });

  test("is told by the plugin", () => {
    const env = {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: "c9",
      CNI_NETNS: pod.path,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/none",
    };
    const { ipam: _, ...plain } = conf();
    const { status, stdout } = typed([], env, JSON.stringify(plain));
    expect([status, JSON.parse(stdout)]).toMatchObject([
      1,
      { code: 11, msg: expect.stringContaining("this user may not connect (EACCES), wanted root") },
    ]);
  });

  test("is told by whatever else the system refuses him", () => {
    const { status, stderr } = typed(
      ["ipam", "map", "--conf", "-", "--svg", "/root/pool.svg"],
      {},
      JSON.stringify({ ...conf(), ipam: { ...conf().ipam, dataDir: "/tmp/pt-none" } }),
    );
    expect([status, stderr]).toEqual([1, expect.stringMatching(/It wants root, which this user is not\n$/)]);
  });

  test.each([
    ["doctor", "Cannot read ", 2],
    ["agent", "Cannot read ", 1],
    ["nodes list", "Cannot read ", 1],
    ["trace a b", "Cannot trace the packet: ", 1],
  ])("is told by %s whose agent.yaml is", (line, begin, status) => {
    chmodSync(home.configFile, 0o600);
    const ended = typed([...line.split(" "), "--config", home.configFile]);
    expect([ended.status, ended.stdout]).toEqual([status, ""]);
    expect(ended.stderr).toMatch(
      new RegExp(`^${begin}"${home.configFile}".*this user may not read it .EACCES., wanted root`),
    );
  });

  test("is told by uninstall whose the leases are", () => {
    const args = [
      "uninstall",
      "--bin-dir",
      `${home.directory}/no-bin`,
      "--config",
      `${home.directory}/none.yaml`,
      "--dry-run",
    ];
    writeFileSync(join(home.directory, "none.yaml"), readFileSync(home.configFile));
    const { status, stderr } = typed(args);
    expect([status, stderr]).toEqual([1, expect.stringContaining("this user may not open it (EACCES), wanted root\n")]);
  });

  test("who has no agent.yaml is told what makes one", () => {
    for (const line of ["doctor", "agent --check", "nodes list", "trace a b"]) {
      const args = [...line.split(" "), "--config", "/none/agent.yaml"];
      const { stderr } = spawnSync(pipette, args, { encoding: "utf8" });
      expect(stderr, line).toContain('"pipette install" writes one, --config names another');
    }
  });

  test("root is told none of it", () => {
    const ended = spawnSync(pipette, ["status", "--socket", `${home.directory}/none.sock`], { encoding: "utf8" });
    expect(ended.stderr).toContain("nobody serves");
    expect(statSync(home.socket).isSocket()).toBe(true);
  });
});
