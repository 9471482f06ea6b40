import { chmodSync, copyFileSync, constants as fs, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables, resultOf, run, variables } from "../conformance/plugin.ts";
import { AgentHome, type AgentProcess } from "../support/agent-process.ts";
import { startCommand } from "../support/cni-call.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { stranger } from "./planted.ts";

/** What a shell of somebody tries with each thing of ours, and what it must not be able to do. */
const attempts: Readonly<Record<string, string>> = {
  read: 'cat "$1" >/dev/null',
  write: ': >> "$1"',
  "empty or make": ': > "$1"',
  remove: 'rm -f "$1" && ! test -e "$1"',
  rename: 'mv "$1" "$1.his"',
  replace: 'ln -sfn /etc/passwd "$1"',
  "give more rights": 'chmod 0777 "$1"',
  "give away": 'chown "$(id -u)" "$1"',
  "link beside": 'ln "$1" "$1.his"',
  "make beside": ': > "$1.his"',
  "make a directory beside": 'mkdir "$1.his"',
};

describeWith("a user of the node that is nobody to us", ["root", "linux"], () => {
  let home: AgentHome;
  let agent: AgentProcess;
  let pod: NetworkNamespace;
  let pipette: string;

  const as = ["setpriv", `--reuid=${stranger}`, `--regid=${stranger}`, "--clear-groups", "--no-new-privs", "--"];
  const conf = () => ({
    cniVersion: "1.0.0",
    name: "pods",
    type: "pipette",
    socket: home.socket,
    dataDir: home.dataDir,
  });

  beforeAll(async () => {
    compileExecutables();
    // A mask that gives everybody everything must not decide.
    const wide = ["sh", "-c", 'umask 0; exec "$@"', "sh", "unshare", "--net"];
    home = new AgentHome({ logLevel: "debug" }, executables, wide);
    chmodSync(home.directory, 0o755);
    chmodSync(home.configFile, 0o600);
    // Where the repository lies he may not be able to look.
    pipette = join(home.directory, "pipette");
    copyFileSync(join(executables, "pipette"), pipette, fs.COPYFILE_FICLONE);
    agent = await home.start();
    pod = NetworkNamespace.create();
    const logFile = join(home.directory, "net.d", "plugin.log");
    resultOf(await run({ env: variables("ADD", { CNI_NETNS: pod.path }), stdin: { ...conf(), logFile } }));
  });
  afterAll(async () => {
    pod[Symbol.dispose]();
    await agent.end();
    await home[Symbol.asyncDispose]();
  });

  /** Everything of ours that is on the disk. */
  const ours = (): string[] =>
    readdirSync(home.directory, { recursive: true })
      .map(String)
      .filter((name) => name !== "pipette")
      .sort();

  const stateOf = (name: string): string => {
    const path = join(home.directory, name);
    const { mode, uid, ino, isFile } = lstatSync(path);
    const leases =
      /leases\.db|plugin\.log|^pipette$/.test(name) || !isFile.call(lstatSync(path))
        ? ""
        : readFileSync(path, "latin1");
    return `${name} ${mode.toString(8)} ${uid} ${ino} ${leases}`;
  };

  test("can read, change, remove or replace nothing of it, nor put anything beside it", async () => {
    const before = ours().map(stateOf);
    expect(ours()).toEqual(
      expect.arrayContaining([
        "data/leases.db",
        "data/leases.db-wal",
        "data/agent.lock",
        "run/cni.sock",
        "run/cni.sock.lock",
        "net.d/10-pipette.conflist",
        "net.d/plugin.log",
      ]),
    );
    const script = Object.entries(attempts).map(([name, attempt]) => `( ${attempt} ) 2>/dev/null && echo "${name} $1"`);
    const done = await Promise.all(
      ours().map(
        (name) =>
          startCommand([...as, "sh", "-c", `${script.join("\n")}\ntrue`, "sh", join(home.directory, name)], {}, "")
            .ended,
      ),
    );
    // Directories that others may look into are no secret: what a node's network is called.
    expect(done.map(({ stdout }) => stdout).join("")).toBe("");
    expect(ours().map(stateOf)).toEqual(before);
  });

  test("cannot talk to the agent, nor open the leases, with our own executable", async () => {
    expect((await startCommand([...as, pipette, "version"], {}, "").ended).status).toBe(0);
    const words = [
      ["status", "--config", home.configFile],
      ["ipam", "list", "--data-dir", home.dataDir],
      ["doctor", "--config", home.configFile],
    ];
    for (const command of words) {
      const ended = await startCommand([...as, pipette, ...command], {}, "").ended;
      expect([ended.status === 0, ended.stdout]).toEqual([false, ""]);
    }
    const plugin = await startCommand(
      [...as, pipette],
      variables("ADD", { CNI_NETNS: pod.path, CNI_CONTAINERID: "his" }) as Record<string, string>,
      JSON.stringify(conf()),
    ).ended;
    expect(plugin.status).not.toBe(0);
    expect(agent.stderr).not.toContain('"container":"his"');
    expect((await home.status()).problems).toEqual([]);
  });
});
