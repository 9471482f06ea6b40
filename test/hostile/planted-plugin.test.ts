import {
  chmodSync,
  chownSync,
  copyFileSync,
  constants as fs,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { compileExecutables, errorOf, executables, resultOf, run, scratch, variables } from "../conformance/plugin.ts";
import { startScriptedAgent } from "../conformance/scripted-agent.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { type Plant, plants, stranger, Victim } from "./planted.ts";

const confOf = (dataDir: string, more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "n",
  ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.79.0.0/24" }]], ...more },
});

const ipam = (verb: string, stdin: object) => run({ executable: "pipette-ipam", env: variables(verb), stdin });

describeWith("the plugin runs, and before it another user", ["root", "linux"], () => {
  beforeAll(compileExecutables);

  test.each(["link", "link to nothing", "hard link", "pipe", "file of another"] as const)(
    "has put a %s at logFile: nothing is written there, and the verb does what it is to do",
    async (plant) => {
      using directory = scratch();
      await using agent = await startScriptedAgent();
      const victim = new Victim(`${directory.path}/shadow`);
      const logFile = `${directory.path}/x.log`;
      plants[plant](logFile, victim.path);
      const stdin = { cniVersion: "1.1.0", name: "n", type: "pipette", socket: agent.socket, logFile };
      const ended = await run({ env: variables("ADD"), stdin });
      resultOf(ended);
      expect(ended.stderr).toContain(`Cannot write the log "${logFile}"`);
      expect(victim.harm()).toEqual([]);
      if (plant === "file of another") expect(readFileSync(logFile, "utf8")).toBe("");
    },
  );

  const inData: readonly (readonly [string, readonly Plant[], string])[] = [
    ["leases.db", ["link", "link to nothing", "pipe", "file of another"], "Cannot use the lease database"],
    ["leases.db-wal", ["link", "pipe"], "Cannot use the lease database"],
    ["leases.db-shm", ["link", "pipe"], "Cannot use the lease database"],
    ["n.json", ["link", "pipe", "file of another"], "Cannot read the settings file"],
    ["n/lock", ["link", "link to nothing"], "host-local"],
  ];
  test.each(inData)(
    "has put something at %s of the data directory: an error that says so",
    async (at, planted, says) => {
      for (const plant of planted) {
        using directory = scratch();
        const dataDir = `${directory.path}/data`;
        const victim = new Victim(`${directory.path}/shadow`);
        mkdirSync(dataDir);
        if (at.startsWith("leases.db-")) resultOf(await ipam("ADD", confOf(dataDir)));
        if (at.includes("/")) mkdirSync(`${dataDir}/n`);
        rmSync(`${dataDir}/${at}`, { force: true });
        plants[plant](`${dataDir}/${at}`, victim.path);
        const error = errorOf(await ipam("ADD", confOf(dataDir)));
        expect(error.msg, plant).toContain(says);
        expect(error.code, plant).not.toBe(100);
        expect(victim.harm()).toEqual([]);
      }
    },
  );

  test("owns the data directory, or may write to it: nothing is read or made there", async () => {
    const ways: readonly ((path: string) => void)[] = [
      (path) => chownSync(path, stranger, stranger),
      (path) => chmodSync(path, 0o777),
      (path) => chmodSync(path, 0o1777),
      (path) => chmodSync(path, 0o770),
    ];
    for (const way of ways) {
      using directory = scratch();
      const dataDir = `${directory.path}/data`;
      mkdirSync(dataDir);
      way(dataDir);
      for (const verb of ["ADD", "CHECK"]) {
        const prevResult = { cniVersion: "1.1.0", ips: [{ address: "10.79.0.2/24" }] };
        const { code, msg } = errorOf(await ipam(verb, { ...confOf(dataDir), prevResult }));
        expect(code).toBe(101);
        expect(msg).toContain(`its directory ${msg.includes("65534") ? "belongs to" : "can be written by others"}`);
      }
      expect(readdirSync(dataDir)).toEqual([]);
    }
  });

  test.each([
    ["a pipe", (path: string) => plants.pipe(path)],
    ["a directory", (path: string) => mkdirSync(path)],
    ["an endless device", (path: string) => plants.link(path, "/dev/zero")],
    ["a device that waits", (path: string) => plants.link(path, "/dev/console")],
  ])("has put %s at resolvConf: an error, and nothing is allocated", async (_, plant) => {
    using directory = scratch();
    const resolvConf = `${directory.path}/resolv.conf`;
    plant(resolvConf);
    const error = errorOf(await ipam("ADD", confOf(`${directory.path}/data`, { resolvConf })));
    expect(error).toMatchObject({ code: 5, msg: expect.stringContaining("it is no regular file") });
    expect(directory.files()).toEqual(["resolv.conf"]);
  });

  test("listens at the agent's place: he hears nothing of the pod, and his word is not taken", async () => {
    using directory = scratch();
    chmodSync(directory.path, 0o755);
    mkdirSync(`${directory.path}/his`);
    chownSync(`${directory.path}/his`, stranger, stranger);
    const executable = `${directory.path}/pipette`;
    copyFileSync(`${executables}/pipette`, executable, fs.COPYFILE_FICLONE);
    const socket = `${directory.path}/his/cni.sock`;
    const as = ["setpriv", `--reuid=${stranger}`, `--regid=${stranger}`, "--clear-groups", "--"];
    const serve = [
      "ipam",
      "serve",
      "--socket",
      socket,
      "--data-dir",
      `${directory.path}/his/data`,
      "--log-level=debug",
    ];
    const his = new AgentProcess([...as, executable, ...serve]);
    await his.logged((line) => line["message"] === "ready");
    const stdin = { cniVersion: "1.1.0", name: "n", type: "pipette", socket };
    expect(errorOf(await run({ env: variables("ADD"), stdin }))).toMatchObject({
      code: 11,
      msg: expect.stringContaining("user 65534 listens there, wanted root"),
    });
    await his.end();
    expect(his.stderr).not.toContain("served");
  });
});
