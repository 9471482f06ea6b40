import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { smallSample, writeSample } from "../fakes/sample-executable.ts";
import { eventually } from "../support/agent-process.ts";
import { anotherRelease, compileStandIn } from "./service-stand-in.ts";
import { describeWine } from "./wine/describe-wine.ts";
import { executables, onDriveZ } from "./wine/prefix.ts";
import type { Program } from "./wine/program.ts";

const pipette = `${executables}/pipette.exe`;
const binDir = "C:\\Program Files\\containerd\\cni\\bin";
const libexecDir = "C:\\Program Files\\Pipette";
const dataDir = "C:\\ProgramData\\pipette";
const digest = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

interface Report {
  readonly steps: readonly {
    readonly action: string;
    readonly target: string;
    readonly detail: string;
    readonly done: boolean;
  }[];
  readonly warnings: readonly string[];
  readonly error?: { readonly message: string };
}

beforeAll(() => {
  const compile = join(import.meta.dirname, "../../build/compile.ts");
  const built = spawnSync(process.execPath, ["run", compile, "windows"], { encoding: "utf8" });
  if (built.status !== 0) throw new Error(`${built.stdout}${built.stderr}`);
});

describeWine("pipette.exe install and uninstall", (wine) => {
  let old: string;
  let fresh: string;
  /** Two releases that nobody runs, so that they can be small. */
  let samples: readonly [string, string];
  /** One more, with a small program in front of it. */
  let behind: string;
  let bin: string;
  let libexec: string;

  const run = async (
    ...args: readonly string[]
  ): Promise<{ status: number | null; report: Report; stderr: string }> => {
    const { status, stdout, stderr } = await wine.prefix.run(pipette, { args: [...args, "--json"] });
    return { status, report: stdout === "" ? { steps: [], warnings: [] } : JSON.parse(stdout), stderr };
  };
  const install = (from: string, ...more: readonly string[]) => {
    const values = ["--subnet", "10.9.0.0/24", "--node-address", "192.168.1.5"];
    return run("install", "--from", onDriveZ(from), ...values, ...more);
  };
  const service = async (verb: "query" | "stop" | "start"): Promise<string> =>
    (await wine.prefix.run("sc", { args: [verb, "pipette-agent"] })).stdout;
  const logLines = (): Record<string, unknown>[] =>
    readFileSync(join(wine.prefix.unixPath(dataDir), "agent.log"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));

  beforeAll(async () => {
    const place = dirname(wine.prefix.directory);
    old = await compileStandIn(place);
    fresh = join(place, "fresh.exe");
    anotherRelease(old, fresh);
    samples = [join(place, "sample1.exe"), join(place, "sample2.exe")];
    for (const sample of samples) writeSample(sample, sample);
    behind = join(place, "behind.exe");
    writeSample(behind, "behind", { carried: smallSample("in front") });
    bin = wine.prefix.unixPath(binDir);
    libexec = wine.prefix.unixPath(libexecDir);
  });

  // Wine ends its services when the last other program has ended.
  let companion: Program;
  beforeEach(() => {
    companion = wine.prefix.start("cmd", { args: ["/c", "pause"], stdin: new Uint8Array(0), timeoutMs: 600_000 });
    return async () => {
      if ((await service("query")).includes("STATE")) await run("uninstall", "--purge");
      await companion[Symbol.asyncDispose]();
      for (const directory of [bin, libexec, wine.prefix.unixPath(dataDir)])
        rmSync(directory, { recursive: true, force: true });
    };
  });

  test("a service is registered, serves, stops as asked and is removed; its data stay until they are purged", async () => {
    const installed = await install(old);
    expect(installed.status).toBe(0);
    // Wine has another address than the one that is named.
    expect(installed.stderr).toMatch(
      /^Warning: no adapter of this machine has 192\.168\.1\.5, .*\(--node-address\): it has .*\r?\n$/,
    );
    const isPath = ({ target }: { target: string }): boolean => target === "PATH";
    const steps = installed.report.steps.filter((step) => !isPath(step));
    expect(steps.map(({ action }) => action)).toEqual(
      [..."create create create create create create start none".split(" ")].slice(-steps.length),
    );
    expect(installed.report.steps.find(isPath)?.detail).toContain(`+ ';${binDir}', 'Machine')`);
    expect(await service("query")).toMatch(/STATE +: 4 +RUNNING/);
    const [ready] = logLines();
    const config = `${dataDir}\\agent.yaml`;
    expect(ready).toMatchObject({
      message: "ready",
      digest: digest(old),
      arguments: ["agent", "--service", "--config", config, "--log-file", `${dataDir}\\agent.log`],
    });
    expect(readFileSync(wine.prefix.unixPath(config), "utf8")).toContain('hns: { nodeAddress: "192.168.1.5" }');
    expect(statSync(join(bin, "pipette-ipam.exe")).ino).toBe(statSync(join(bin, "pipette.exe")).ino);

    const again = await install(old);
    expect(new Set(again.report.steps.map(({ action }) => action))).toEqual(new Set(["keep", "none"]));
    expect(logLines()).toHaveLength(1);

    await service("stop");
    await eventually(async () => /STATE +: 1 +STOPPED/.test(await service("query")), "the stop");
    expect(logLines().map(({ message }) => message)).toEqual(["ready", "signal", "stopped"]);
    expect((await run("uninstall")).status).toBe(0);
    expect(await service("query")).not.toContain("STATE");
    expect(readdirSync(bin)).toEqual([]);
    expect(existsSync(wine.prefix.unixPath(config))).toBe(true);
    expect((await run("uninstall", "--purge")).status).toBe(0);
    expect(existsSync(wine.prefix.unixPath(dataDir))).toBe(false);
  });

  test("peers 15: an upgrade renames the running executable aside, restarts the service, and removes the old one", async () => {
    await install(old);
    const upgraded = await install(fresh);
    expect([upgraded.status, upgraded.report.error]).toEqual([0, undefined]);
    const [main] = upgraded.report.steps.filter(({ target }) => target === `${binDir}\\pipette.exe`);
    expect(main).toMatchObject({
      action: "replace",
      detail: expect.stringMatching(/goes on as ".*\.old-[0-9a-f]{12}-1"/),
    });
    expect(logLines().map(({ message, digest: of }) => of ?? message)).toEqual([
      digest(old),
      "signal",
      "stopped",
      digest(fresh),
    ]);
    expect(readdirSync(bin).sort()).toEqual([".pipette.lock", "pipette-ipam.exe", "pipette.exe"]);
    for (const name of ["pipette.exe", "pipette-ipam.exe"]) expect(digest(join(bin, name))).toBe(digest(fresh));
  });

  test("peers 15: an executable that goes on running keeps its file until it ends; the next run sweeps it up", async () => {
    await install(pipette, "--no-service");
    const data = ["--data-dir", "C:\\elsewhere", "--socket", "\\\\.\\pipe\\pt-install"];
    await using running = wine.prefix.start(join(bin, "pipette.exe"), { args: ["ipam", "serve", ...data] });
    await running.saying('"ready"');
    const replaced = await install(behind, "--no-service");
    expect(replaced.status).toBe(0);
    // The small program waits for the whole one, so both run.
    const asideIn = (directory: string): string[] =>
      readdirSync(directory)
        .filter((name) => name.includes(".old-"))
        .map((name) => digest(join(directory, name)));
    const small = digest(`${executables}/forward.exe`);
    expect([asideIn(bin), asideIn(libexec)]).toEqual([[small, small], [digest(pipette)]]);
    expect(replaced.report.steps.at(-1)?.detail).toContain("still running, left for the next time");
    expect([digest(join(libexec, "pipette.exe")), running.hasEnded]).toEqual([digest(behind), false]);

    await running.stop();
    await install(samples[0], "--no-service");
    expect(readdirSync(bin).sort()).toEqual([".pipette.lock", "pipette-ipam.exe", "pipette.exe"]);
    expect(readdirSync(libexec).sort()).toEqual([".pipette.lock", "pipette.exe"]);
    expect((await run("uninstall")).status).toBe(0);
    expect([readdirSync(bin), existsSync(libexec)]).toEqual([[], false]);
  });

  test("a run that was killed between the two renames is finished by the next", async () => {
    const [before, after] = samples;
    await install(before, "--no-service");
    const path = join(bin, "pipette.exe");
    renameSync(path, `${path}.old-${digest(path).slice(0, 12)}-1`);
    writeSample(join(bin, ".pipette.exe.new-44-0badcafe"), "half");
    const finished = await install(after, "--no-service");
    expect(finished.status).toBe(0);
    expect(readdirSync(bin).sort()).toEqual([".pipette.lock", "pipette-ipam.exe", "pipette.exe"]);
    expect(digest(path)).toBe(digest(after));
  });

  test("killed at any time: whole files only, and the next run finishes", async () => {
    const [before, after] = samples;
    const wanted = samples.map(digest);
    for (const afterMs of [150, 250, 400]) {
      await install(before, "--no-service");
      const killed = wine.prefix.start(pipette, { args: ["install", "--from", onDriveZ(after), "--no-service"] });
      await Bun.sleep(afterMs);
      killed.kill("SIGKILL");
      await killed.ended;
      for (const name of ["pipette.exe", "pipette-ipam.exe"])
        if (existsSync(join(bin, name)))
          expect(wanted, `${name} after ${afterMs} ms`).toContain(digest(join(bin, name)));
      expect((await install(after, "--no-service")).status).toBe(0);
      expect(readdirSync(bin).sort()).toEqual([".pipette.lock", "pipette-ipam.exe", "pipette.exe"]);
      expect(digest(join(bin, "pipette-ipam.exe"))).toBe(wanted[1]);
    }
  });

  test("a service that cannot start ends the run with its exit status and the log's place; it stays registered", async () => {
    mkdirSync(wine.prefix.unixPath(dataDir), { recursive: true });
    wine.prefix.write(`${dataDir}\\refuse`, "");
    const failed = await install(old);
    expect(failed.status).toBe(1);
    expect(failed.report.error?.message).toContain('Cannot start service "pipette-agent": it ended with status 3');
    expect(failed.stderr).toContain(`${dataDir}\\agent.log`);
    rmSync(wine.prefix.unixPath(`${dataDir}\\refuse`));
    expect((await install(old)).status).toBe(0);
    expect(await service("query")).toMatch(/STATE +: 4 +RUNNING/);
  });

  test("a stop takes as long as the calls in flight, and says meanwhile that it goes on", async () => {
    mkdirSync(wine.prefix.unixPath(dataDir), { recursive: true });
    wine.prefix.write(`${dataDir}\\linger`, "");
    await install(old);
    expect(await service("stop")).toMatch(/STATE +: [34] /);
    await eventually(async () => /STATE +: 3 +STOP_PENDING/.test(await service("query")), "the stop to be pending");
    await eventually(async () => /STATE +: 1 +STOPPED/.test(await service("query")), "the stop");
    expect(logLines().at(-1)).toMatchObject({ message: "stopped" });
    rmSync(wine.prefix.unixPath(`${dataDir}\\linger`));
  });

  test("uninstall from the installed file has it gone with the machine's next start", async () => {
    await install(pipette, "--no-service");
    const { status, stdout } = await wine.prefix.run(join(bin, "pipette.exe"), { args: ["uninstall", "--no-service"] });
    expect([status, stdout]).toEqual([0, expect.stringContaining("gone with the next start of the machine")]);
    const key = "HKLM\\System\\CurrentControlSet\\Control\\Session Manager";
    const pending = await wine.prefix.run("reg", { args: ["query", key, "/v", "PendingFileRenameOperations"] });
    const left = [bin, libexec].flatMap((directory) => readdirSync(directory));
    for (const name of left) expect(pending.stdout).toContain(name);
    expect([left.length > 0, left.every((name) => name.includes(".old-"))]).toEqual([true, true]);
  });

  test("outside the service control manager the service refuses to run, and says how it is meant", async () => {
    const { status, stderr } = await wine.prefix.run(pipette, { args: ["agent", "--service"] });
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining("wanted to be started by the service control manager"),
    ]);
  });
});
