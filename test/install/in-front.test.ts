import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { supportedVersions } from "../../shared/cni/versions.ts";
import { compileExecutables, executables, scratch } from "../conformance/plugin.ts";
import { smallSample, writeSample } from "../fakes/sample-executable.ts";
import { type CniEnded, startCommand } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";
import { earlierExecutables } from "../upgrade/earlier-release.ts";

const pipette = join(executables, "pipette");
const sumOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const digest = (path: string): string => sumOf(readFileSync(path));

/** Two releases that carry a small program, one that does not know of any, and where they are installed. */
class Place {
  readonly directory: string;
  readonly bin: string;
  readonly libexec: string;
  readonly releases: Readonly<Record<"plain" | "first" | "second", string>>;
  readonly #smallOf = new Map<string, string>();

  constructor(directory: string) {
    const at = (name: string): string => join(directory, name);
    [this.directory, this.bin, this.libexec] = [directory, at("bin"), at("libexec")];
    this.releases = { plain: at("plain"), first: at("first"), second: at("second") };
    writeSample(this.releases.plain, "none");
    for (const name of ["first", "second"] as const) {
      const carried = smallSample(name);
      writeSample(this.releases[name], name, { carried });
      this.#smallOf.set(sumOf(carried), digest(this.releases[name]));
    }
  }

  install(from: string, ...args: readonly string[]): string[] {
    const own = ["--from", from, "--libexec-dir", this.libexec, ...args];
    return ["install", "--executables-only", "--bin-dir", this.bin, ...own];
  }

  uninstall(): string[] {
    return ["uninstall", "--executables-only", "--bin-dir", this.bin, "--libexec-dir", this.libexec];
  }

  /** What a runtime may start now: a whole program of these releases, or a small one whose whole one is there. */
  expectUsable(names: readonly string[] = ["pipette", "pipette-ipam"]): void {
    const whole = Object.values(this.releases).map(digest);
    for (const name of names) {
      const found = digest(join(this.bin, name));
      if (whole.includes(found)) continue;
      expect([...this.#smallOf.keys()], name).toContain(found);
      expect([...this.#smallOf.values()], `the whole one behind ${name}`).toContain(
        digest(join(this.libexec, "pipette")),
      );
    }
  }
}

/** In a mask that would keep others out. */
const run = (executable: string, args: readonly string[]): Promise<CniEnded> =>
  startCommand(["/bin/sh", "-c", 'umask 077; exec "$0" "$@"', executable, ...args], {}, "").ended;

async function succeed(executable: string, args: readonly string[]): Promise<CniEnded> {
  const ended = await run(executable, args);
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
  return ended;
}

let directory: ReturnType<typeof scratch>;
let place: Place;
const makePlace = () => {
  directory = scratch();
  place = new Place(directory.path);
  return () => directory[Symbol.dispose]();
};

describeWith("pipette install, with the small program in front", ["linux", "musl"], () => {
  beforeAll(compileExecutables);
  beforeEach(makePlace);

  const version = (path: string) => startCommand([path], { CNI_COMMAND: "VERSION" }, "").ended;

  test("puts both in place, for everybody to run, and takes both away", async () => {
    await succeed(pipette, place.install(pipette));
    const [main, ipam, whole] = ["bin/pipette", "bin/pipette-ipam", "libexec/pipette"].map((name) =>
      statSync(join(place.directory, name)),
    );
    expect([main?.ino === ipam?.ino, main?.mode, whole?.mode]).toEqual([true, 0o100755, 0o100755]);
    expect(digest(join(place.bin, "pipette"))).toBe(digest(join(executables, "forward")));
    expect(digest(join(place.libexec, "pipette"))).toBe(digest(pipette));
    expect(JSON.parse((await version(join(place.bin, "pipette"))).stdout)).toMatchObject({ supportedVersions });
    const again = await succeed(pipette, place.install(pipette, "--json"));
    const { steps } = JSON.parse(again.stdout) as { steps: { action: string }[] };
    expect(new Set(steps.map(({ action }) => action))).toEqual(new Set(["keep"]));
    await succeed(pipette, place.uninstall());
    expect([readdirSync(place.bin), existsSync(place.libexec)]).toEqual([[], false]);
  });

  test("a whole program that somebody has copied there is a plugin by itself, and can install itself behind", async () => {
    mkdirSync(place.bin);
    const copy = join(place.bin, "pipette");
    copyFileSync(pipette, copy);
    expect(JSON.parse((await version(copy)).stdout)).toMatchObject({ supportedVersions });
    await succeed(copy, place.install(copy));
    expect(digest(copy)).toBe(digest(join(executables, "forward")));
    // What installs is the installed one.
    await succeed(join(place.libexec, "pipette"), place.install(join(place.libexec, "pipette")));
  });

  test("the plan tells a node whose calls are slow: the whole program, or another release's small one, is to be replaced", async () => {
    const planned = async () => {
      const { stdout } = await succeed(pipette, place.install(pipette, "--dry-run"));
      const [, action = "", size = ""] =
        new RegExp(`^(\\w+) +${place.bin}/pipette +([\\d.]+ \\wB)`, "m").exec(stdout) ?? [];
      return { action, isSmall: size.endsWith(" kB") };
    };
    mkdirSync(place.bin);
    copyFileSync(pipette, join(place.bin, "pipette"));
    expect(await planned()).toEqual({ action: "replace", isSmall: true });
    await succeed(pipette, place.install(place.releases.first));
    expect(await planned()).toEqual({ action: "replace", isSmall: true });
    await succeed(pipette, place.install(pipette));
    expect(await planned()).toEqual({ action: "keep", isSmall: true });
  });

  test("goes whole under both names where nobody has said where else, as asked, and where it carries none", async () => {
    const expectWhole = (of: string) => {
      for (const name of ["pipette", "pipette-ipam"]) expect(digest(join(place.bin, name))).toBe(digest(of));
    };
    const { first, plain } = place.releases;
    await succeed(pipette, ["install", "--executables-only", "--bin-dir", place.bin, "--from", first]);
    expectWhole(first);
    expect(existsSync(place.libexec)).toBe(false);
    await succeed(pipette, place.install(plain));
    expectWhole(plain);
    await succeed(pipette, place.install(first, "--no-libexec"));
    expectWhole(first);
  });

  test("refuses a small program for a whole one, and one directory for both", async () => {
    await succeed(pipette, place.install(place.releases.first));
    const small = await run(pipette, place.install(join(place.bin, "pipette")));
    expect([small.status, small.stderr]).toEqual([1, expect.stringContaining("it is the small program in front")]);
    const same = await run(pipette, ["install", "--bin-dir", place.bin, "--libexec-dir", place.bin]);
    expect([same.status, same.stderr]).toEqual([1, expect.stringContaining("wanted two directories")]);
  });

  test("says where the small program looks for the whole one, if that goes elsewhere and it is no container's view", async () => {
    const own = ["--no-service", "--config", join(place.directory, "agent.yaml"), "--subnet=10.9.0.0/24", "--dry-run"];
    const { stderr } = await run(pipette, [...place.install(pipette).filter((word) => !word.includes("only")), ...own]);
    expect(stderr).toMatch(/^Warning: the small program starts "\/usr\/libexec\/pipette\/pipette", .* found there\n$/);
  });
});

describeWith("pipette install at the usual places", ["linux", "root", "musl"], () => {
  beforeAll(compileExecutables);

  /** In mounts of its own. @returns what is planned for the two directories, and what is said */
  const planned = (mounts: string, ...args: readonly string[]) => {
    const script = `mount -t tmpfs t /opt && mkdir -p /opt/cni/bin && mount -t tmpfs t /usr/libexec && ${mounts} && exec "$0" "$@"`;
    const install = ["install", "--executables-only", "--dry-run", "--json", ...args];
    const { stdout, stderr } = spawnSync("unshare", ["--mount", "sh", "-c", script, pipette, ...install], {
      encoding: "utf8",
    });
    const { steps } = JSON.parse(stdout) as { steps: { target: string }[] };
    return [steps.map(({ target }) => target), stderr];
  };
  const [whole, ...both] = ["/usr/libexec/pipette/pipette", "/opt/cni/bin/pipette", "/opt/cni/bin/pipette-ipam"];

  test.each([
    ["both can be written", "true", ["/usr/libexec/pipette", whole, ...both], /^$/],
    ["libexec is read-only", "mount -o remount,ro /usr/libexec", both, /"\/usr\/libexec\/pipette" is on a read-only/],
    ["the plugins' is another machine's", "mount -t tmpfs t /opt/cni/bin", both, /"\/opt\/cni\/bin" is mounted by/],
  ])("where %s", (_what, mounts, targets, said) => {
    expect(planned(mounts)).toEqual([targets, expect.stringMatching(said)]);
    // Whoever says what is wanted is not told about it.
    expect(planned(mounts, "--no-libexec")).toEqual([both, ""]);
  });
});

/** Calls that put a file in its place. Several threads make them, and each counts for itself. */
const points = [
  ["rename", 1],
  ["rename", 2],
  ["link", 1],
  ["rename", 3],
] as const;

/** Runs the command up to the nth call of that name. @returns whether that was reached */
async function killedAt(name: string, nth: number, command: readonly string[]): Promise<boolean> {
  const inject = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${name}`];
  const kill = ["-e", `inject=${name}:signal=KILL:when=${nth}`];
  const child = spawn("strace", [...inject, ...kill, pipette, ...command], { stdio: "ignore", env: {} });
  return (await new Promise((resolve) => child.on("close", (_status, signal) => resolve(signal)))) === "SIGKILL";
}

describeWith("an installation with the small program in front that is killed", ["strace", "musl"], () => {
  beforeAll(compileExecutables);
  beforeEach(makePlace);

  let killed = 0;
  test.each(points)("at %s number %i: what there is can be used, and the next run finishes", async (name, nth) => {
    const { first, second } = place.releases;
    await succeed(pipette, place.install(first));
    if (await killedAt(name, nth, place.install(second))) killed++;
    place.expectUsable();
    await succeed(pipette, place.install(second));
    place.expectUsable();
    expect(digest(join(place.libexec, "pipette"))).toBe(digest(second));
    expect(readdirSync(place.bin).sort()).toEqual([".pipette.lock", "pipette", "pipette-ipam"]);
    expect(readdirSync(place.libexec).sort()).toEqual([".pipette.lock", "pipette"]);
  });

  test.each([1, 2])("in a removal, at file number %i: no small program outlives its whole one", async (nth) => {
    await succeed(pipette, place.install(place.releases.first));
    if (await killedAt("unlink", nth, place.uninstall())) killed++;
    place.expectUsable(readdirSync(place.bin).filter((name) => !name.startsWith(".")));
    await succeed(pipette, place.uninstall());
    expect([readdirSync(place.bin), existsSync(place.libexec)]).toEqual([[], false]);
  });

  test("most of these points were reached", () => {
    expect(killed).toBeGreaterThan(points.length / 2);
  });
});

describeWith("the small program in front, and an earlier release", ["linux", "musl", "earlier-release"], () => {
  let earlier: string;
  beforeAll(async () => {
    compileExecutables();
    earlier = join(await earlierExecutables("linux"), "pipette");
  });
  beforeEach(makePlace);

  test("its installer takes the small program for its own: it puts the whole one there, and takes away either", async () => {
    const own = ["install", "--bin-dir", place.bin, "--executables-only"];
    await succeed(pipette, place.install(pipette));
    expect((await succeed(earlier, own)).stdout).toMatch(/^replace .*bin\/pipette .*\n^replace .*pipette-ipam /m);
    for (const name of ["pipette", "pipette-ipam"]) expect(digest(join(place.bin, name))).toBe(digest(earlier));
    await succeed(pipette, place.install(pipette));
    expect(digest(join(place.bin, "pipette-ipam"))).toBe(digest(join(executables, "forward")));
    await succeed(earlier, ["uninstall", "--bin-dir", place.bin, "--executables-only"]);
    expect(readdirSync(place.bin)).toEqual([]);
    // That release knows nothing of it; the next installation does.
    expect(existsSync(join(place.libexec, "pipette"))).toBe(true);
    await succeed(pipette, place.uninstall());
    expect(existsSync(place.libexec)).toBe(false);
  });
});
