import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { compileExecutables, executables, scratch } from "../conformance/plugin.ts";
import { writeSample } from "../fakes/sample-executable.ts";
import { type CniEnded, startCommand } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";

const pipette = join(executables, "pipette");
const digest = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

/** A node's directories, and two releases to install. */
interface Place {
  readonly bin: string;
  readonly config: string;
  readonly data: string;
  readonly old: string;
  readonly fresh: string;
}

let place: Place;
beforeAll(compileExecutables);

function placeIn(path: string): Place {
  mkdirSync(path, { recursive: true });
  const at = (...parts: string[]): string => join(path, ...parts);
  const found = { bin: at("bin"), config: at("etc", "agent.yaml"), data: at("data"), old: at("1"), fresh: at("2") };
  writeSample(found.old, "old ");
  writeSample(found.fresh, "new ", { mebibytes: 12 });
  return found;
}

/** The compiled program itself, in another directory and with a mask that would keep others out. */
const run = (verb: string, ...args: readonly string[]): Promise<CniEnded> =>
  startCommand(["/bin/sh", "-c", 'umask 077; exec "$0" "$@"', pipette, ...commandFor(verb, args)], {}, "").ended;

const commandFor = (verb: string, args: readonly string[]): string[] => {
  const data = verb === "install" ? ["--data-dir", place.data] : [];
  return [verb, "--bin-dir", place.bin, "--config", place.config, ...data, "--no-service", ...args];
};

const install = (...args: readonly string[]) => run("install", "--subnet", "10.9.0.0/24", ...args);

describeWith("pipette install and uninstall", ["linux"], () => {
  let directory: ReturnType<typeof scratch>;
  beforeEach(() => {
    directory = scratch();
    place = placeIn(directory.path);
    return () => directory[Symbol.dispose]();
  });

  test("puts itself in place under both names, one file, for everybody to run", async () => {
    const { status, stderr } = await install();
    expect([status, stderr]).toEqual([0, ""]);
    const [main, ipam] = ["pipette", "pipette-ipam"].map((name) => statSync(join(place.bin, name)));
    expect(ipam?.ino).toBe(main?.ino);
    expect((main?.mode ?? 0) & 0o777).toBe(0o755);
    expect(digest(join(place.bin, "pipette"))).toBe(digest(pipette));
    expect(readFileSync(place.config, "utf8")).toContain('subnets: ["10.9.0.0/24"]');
    expect(statSync(place.config).mode & 0o777).toBe(0o600);
  });

  test("the command is on the PATH as a link, which goes with it; another program's name stays its own", async () => {
    const links = join(directory.path, "links");
    mkdirSync(links);
    const link = join(links, "pipette");
    const to = ["--link-dir", links];
    const steps = (ended: CniEnded): Record<string, string> =>
      Object.fromEntries(
        (JSON.parse(ended.stdout) as { steps: { action: string; target: string }[] }).steps.map((step) => [
          step.target,
          step.action,
        ]),
      );
    expect(steps(await install(...to, "--json"))[link]).toBe("create");
    expect(readlinkSync(link)).toBe(join(place.bin, "pipette"));
    expect((await startCommand([link, "--version"], {}, "").ended).status).toBe(0);
    // kubectl finds its plugins by their names.
    const said = async (name: string, ...words: string[]): Promise<string> =>
      (await startCommand([join(links, name), ...words], {}, "").ended).stdout;
    expect(await said("kubectl-pipette", "get", "--help")).toContain("Usage: kubectl pipette get [OPTIONS] KIND");
    expect(await said("kubectl_complete-pipette", "get", "le")).toBe("leases\n:4\n");
    expect(steps(await install(...to, "--json"))[link]).toBe("keep");
    expect((await run("uninstall", ...to)).status).toBe(0);
    expect(existsSync(links) && readdirSync(links)).toEqual([]);

    // Leads nowhere: an earlier installation's.
    symlinkSync(join(directory.path, "gone"), link);
    expect(steps(await install(...to, "--json"))[link]).toBe("replace");
    await run("uninstall", ...to);
    expect(steps(await install(...to, "--no-link", "--json"))[link]).toBeUndefined();
    writeFileSync(link, "another program");
    const beside = await install(...to);
    expect(beside.status).toBe(0);
    expect(beside.stderr).toContain(`Warning: "${link}" is not ours and stays: call "${place.bin}/pipette"\n`);
    await run("uninstall", ...to);
    expect(readFileSync(link, "utf8")).toBe("another program");
  });

  test("peers 15: a second run changes nothing, a new release replaces both names, old calls keep their file", async () => {
    await install("--from", place.old);
    const before = statSync(join(place.bin, "pipette")).ino;
    const again = await install("--from", place.old, "--json");
    const steps = (JSON.parse(again.stdout) as { steps: { action: string }[] }).steps.map(({ action }) => action);
    expect(new Set(steps)).toEqual(new Set(["keep", "none"]));
    expect(statSync(join(place.bin, "pipette")).ino).toBe(before);

    const upgraded = await install("--from", place.fresh);
    expect([upgraded.status, upgraded.stdout]).toEqual([
      0,
      expect.stringMatching(/^replace .*bin\/pipette .*\n^replace /m),
    ]);
    for (const name of ["pipette", "pipette-ipam"])
      expect(digest(join(place.bin, name)), name).toBe(digest(place.fresh));
    expect(statSync(join(place.bin, "pipette")).ino).not.toBe(before);
  });

  test("an executable that cannot be run any more is put in place again", async () => {
    await install("--from", place.old);
    chmodSync(join(place.bin, "pipette"), 0o600);
    await install("--from", place.old);
    expect(statSync(join(place.bin, "pipette")).mode & 0o777).toBe(0o755);
  });

  test("--dry-run shows the same steps and touches nothing", async () => {
    const planned = await install("--from", place.old, "--dry-run", "--json");
    expect(directory.files().filter((name) => !["1", "2"].includes(name))).toEqual([]);
    const { dryRun, steps } = JSON.parse(planned.stdout) as {
      dryRun: boolean;
      steps: { action: string; done: boolean }[];
    };
    expect(dryRun).toBe(true);
    expect(steps.map(({ action }) => action)).toEqual(["create", "create", "create", "create", "none"]);
    expect(steps.some(({ done }) => done)).toBe(false);
  });

  test("agent.yaml is never written over, and its faults stop everything before anything is touched", async () => {
    mkdirSync(join(place.config, ".."), { recursive: true });
    writeFileSync(place.config, "networks: [{ name: mine, subnets: [10.1.0.0/24], bridge: br0 }]\n");
    const kept = await install("--from", place.old);
    expect(kept.status).toBe(0);
    expect(kept.stderr).toContain("so --subnet was not used: what stands in the file holds");
    expect(readFileSync(place.config, "utf8")).toContain("mine");

    writeFileSync(place.config, "networks: []\n");
    const refused = await install("--from", place.fresh);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/Cannot install: ".*agent.yaml" has faults.*\n.*agent.yaml:1:11/);
    expect(digest(join(place.bin, "pipette"))).toBe(digest(place.old));
  });

  test("without agent.yaml and without addresses it says what is missing", async () => {
    const { status, stderr } = await run("install", "--from", place.old);
    expect([status, stderr]).toEqual([1, expect.stringContaining("wanted --subnet, or that file")]);
    expect(existsSync(join(place.bin, "pipette"))).toBe(false);
  });

  test("--executables-only touches neither configuration nor data", async () => {
    const { status } = await run("install", "--from", place.old, "--executables-only");
    expect([status, existsSync(place.config), existsSync(place.data)]).toEqual([0, false, false]);
    expect(digest(join(place.bin, "pipette-ipam"))).toBe(digest(place.old));
    expect((await run("install", "--from", place.old, "--executables-only", "--link-dir", directory.path)).status).toBe(
      0,
    );
    expect(readlinkSync(join(directory.path, "pipette"))).toBe(join(place.bin, "pipette"));
  });

  test.each([
    ["a symbolic link", (path: string) => symlinkSync("/bin/true", path), "it is a symbolic link"],
    ["a directory", (path: string) => mkdirSync(path), "it is a directory"],
    ["another program", (path: string) => writeFileSync(path, "#!/bin/sh\n"), "it is another program"],
  ])("%s in its way is refused by both, and stays", async (_what, make, wanted) => {
    mkdirSync(place.bin);
    const path = join(place.bin, "pipette-ipam");
    make(path);
    const before = lstatSync(path);
    for (const ended of [await install("--from", place.old), await run("uninstall")]) {
      expect(ended.status).toBe(1);
      expect(ended.stderr).toContain(`Cannot replace "${path}": ${wanted}`);
    }
    expect(lstatSync(path).ino).toBe(before.ino);
    expect(existsSync(join(place.bin, "pipette"))).toBe(false);
  });

  test("peers 5.17: what is no executable of ours is not installed", async () => {
    const { status, stderr } = await install("--from", "/bin/true");
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining('Cannot install "/bin/true": it is no executable of Pipette'),
    ]);
  });

  test("another plugin's configuration that would win by its name is warned about", async () => {
    const confDir = join(directory.path, "net.d");
    mkdirSync(confDir);
    mkdirSync(join(place.config, ".."));
    writeFileSync(
      place.config,
      `cni: { confDir: ${confDir} }\ndataDir: ${place.data}\nnetworks: [{ name: n, subnets: [10.1.0.0/24], bridge: br0 }]\n`,
    );
    for (const name of ["05-other.conflist", "09-note.txt", "20-late.conf"]) writeFileSync(join(confDir, name), "{}");
    const { status, stderr } = await run("install", "--from", place.old);
    expect(status).toBe(0);
    expect(stderr.match(/05-other.conflist" comes before "10-pipette.conflist"/)).not.toBeNull();
    expect(stderr).not.toMatch(/09-note|20-late/);
  });

  test("two at once: one works, the other is told whose turn it is", async () => {
    const ended = await Promise.all([1, 2, 3].map(() => install("--from", place.old)));
    const [done, refused] = [0, 1].map((status) => ended.filter((one) => one.status === status));
    expect(done?.length).toBeGreaterThan(0);
    for (const { stderr } of refused ?? []) expect(stderr).toMatch(/is held by process \d+/);
    expect(digest(join(place.bin, "pipette-ipam"))).toBe(digest(place.old));
  });

  test("uninstall takes away what install has put there, the rest only with --purge", async () => {
    await install("--from", place.old);
    mkdirSync(place.data);
    for (const name of ["leases.db-wal", "agent.log", "notes.txt"]) writeFileSync(join(place.data, name), "");
    const first = await run("uninstall");
    expect([first.status, first.stderr]).toEqual([0, ""]);
    expect(readdirSync(place.bin)).toEqual([]);
    expect([existsSync(place.config), readdirSync(place.data).length]).toEqual([true, 3]);
    const purged = await run("uninstall", "--purge");
    expect(purged.status).toBe(0);
    expect([existsSync(place.config), readdirSync(place.data)]).toEqual([false, ["notes.txt"]]);
    expect(purged.stdout).toContain('the directory stays: it holds "notes.txt", which is not of our making');
    // Without one it would be this machine's own data.
    mkdirSync(join(place.config, ".."), { recursive: true });
    writeFileSync(place.config, `dataDir: ${place.data}\nnetworks: [{ name: n, subnets: [10.1.0.0/24], bridge: b }]\n`);
    expect((await run("uninstall", "--purge")).status).toBe(0);
    expect([existsSync(place.config), readdirSync(place.data)]).toEqual([false, ["notes.txt"]]);
  });

  test("uninstall that cannot purge leaves the executable, so that it can be run again as it says", async () => {
    await install("--from", place.old);
    // Where the log should be is a directory, which is no file of ours to remove.
    mkdirSync(join(place.data, "agent.log"), { recursive: true });
    const failed = await run("uninstall", "--purge");
    expect([failed.status, failed.stdout]).toEqual([1, expect.stringContaining("run it again\n")]);
    expect([existsSync(join(place.bin, "pipette")), existsSync(place.config)]).toEqual([true, true]);
    rmdirSync(join(place.data, "agent.log"));
    expect((await run("uninstall", "--purge")).status).toBe(0);
    expect([readdirSync(place.bin), existsSync(place.config), existsSync(place.data)]).toEqual([[], false, false]);
  });

  test("uninstall names what stays, with the command that takes it away", async () => {
    await install("--from", place.old);
    mkdirSync(place.data);
    writeFileSync(join(place.data, "agent.log"), "");
    const wanted = [
      { what: `configuration "${place.config}"`, command: `rm -r ${place.config}` },
      { what: `leases and log "${place.data}"`, command: `rm -r ${place.data}` },
    ];
    const planned = await run("uninstall", "--dry-run", "--json");
    expect(JSON.parse(planned.stdout)).toMatchObject({ dryRun: true, left: wanted });
    const done = await run("uninstall");
    for (const { what, command } of wanted) {
      expect(done.stdout).toMatch(new RegExp(`^${what} +${command}$`, "m"));
      await startCommand(["/bin/sh", "-c", command], { PATH: "/usr/bin:/bin" }, "").ended;
    }
    expect([existsSync(place.config), existsSync(place.data)]).toEqual([false, false]);
  });

  test("uninstall takes the runtime's file first, and another plugin's never", async () => {
    const confDir = join(directory.path, "net.d");
    mkdirSync(confDir);
    mkdirSync(join(place.config, ".."));
    const conflist = join(confDir, "10-pipette.conflist");
    writeFileSync(
      place.config,
      `cni: { confDir: ${confDir} }\ndataDir: ${place.data}\nnetworks: [{ name: n, subnets: [10.1.0.0/24], bridge: b }]\n`,
    );
    await run("install", "--from", place.old);
    writeFileSync(conflist, '{"name":"n","plugins":[{"type":"other"}]}');
    const left = await run("uninstall");
    expect(left.stderr).toContain(`"${conflist}" is left`);
    expect(existsSync(conflist)).toBe(true);
    await run("install", "--from", place.old);
    writeFileSync(conflist, '{"name":"n","plugins":[{"type":"pipette"}]}');
    const removed = await run("uninstall", "--json");
    expect((JSON.parse(removed.stdout) as { steps: unknown[] }).steps[0]).toMatchObject({
      action: "remove",
      target: conflist,
    });
    expect(existsSync(conflist)).toBe(false);
  });
});

/** Calls that change what outlives a process. Several threads make them, and each counts for itself. */
const points = [
  ["mkdir", 1],
  ...[3, 10, 16, 20, 24, 28, 32, 40].map((nth) => ["write", nth] as const),
  ...[1, 2, 3].map((nth) => ["fsync", nth] as const),
  ...[1, 2].flatMap((nth) => [["rename", nth] as const, ["link", nth] as const]),
  ["fchmod", 1],
  ["unlink", 1],
] as const;

describeWith("an installation that is killed", ["strace"], () => {
  let killed = 0;
  test.each(points)("at %s number %i: old or new, whole, and the next run finishes", async (name, nth) => {
    using directory = scratch();
    place = placeIn(directory.path);
    expect((await run("install", "--from", place.old, "--executables-only")).status).toBe(0);
    const command = [pipette, ...commandFor("install", ["--from", place.fresh, "--subnet", "10.9.0.0/24"])];
    const inject = [
      "-f",
      "-qq",
      "-o",
      "/dev/null",
      "-e",
      `trace=${name}`,
      "-e",
      `inject=${name}:signal=KILL:when=${nth}`,
    ];
    const child = spawn("strace", [...inject, ...command], { stdio: "ignore", env: { PATH: "/usr/bin:/bin" } });
    if ((await new Promise((resolve) => child.on("close", (_status, signal) => resolve(signal)))) === "SIGKILL")
      killed++;
    const wanted = [digest(place.old), digest(place.fresh)];
    for (const one of ["pipette", "pipette-ipam"]) expect(wanted, one).toContain(digest(join(place.bin, one)));
    if (existsSync(place.config)) expect(readFileSync(place.config, "utf8")).toMatch(/bridge: "pipette0"\n$/);

    expect((await install("--from", place.fresh)).status).toBe(0);
    expect(readdirSync(place.bin).sort()).toEqual([".pipette.lock", "pipette", "pipette-ipam"]);
    expect(readdirSync(join(place.config, ".."))).toEqual(["agent.yaml"]);
    expect(digest(join(place.bin, "pipette-ipam"))).toBe(wanted[1]);
  });

  test("most of these points were reached", () => {
    expect(killed).toBeGreaterThan(points.length / 2);
  });
});
