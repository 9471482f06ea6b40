import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isObject } from "../../shared/schema/json-fields.ts";
import { madeOnce } from "../support/made-once.ts";

/** The last commit before faults and storms were gone through: what nodes may have that are upgraded to this one. */
const commit = "be1cae1";
/** The last one before Open vSwitch's image, whose agents take the manifests of now. */
export const beforeSwitchImage = "7e882c2";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Sources and executables of that commit, kept like the executables of this one. */
const homeOf = (of: string): string => join(root, "dist", `earlier-${of}`);
const lockfile = "package-lock.json";

const git = (...args: readonly string[]) => spawnSync("git", ["-C", root, ...args], { maxBuffer: 64 << 20 });

/** Why the earlier release cannot be had here; `undefined` where it can. */
export function whyNoEarlierRelease(of = commit): string | undefined {
  if (git("cat-file", "-e", `${of}^{commit}`).status !== 0)
    return `the commit ${of} is not in this clone's history (a shallow one, or no clone at all)`;
  const then = lockedPackages(git("show", `${of}:${lockfile}`).stdout.toString());
  // What it was made of may be there for tests alone by now.
  const now = lockedPackages(readFileSync(join(root, lockfile), "utf8"), true);
  for (const [path, version] of then)
    if (now.get(path) !== version)
      return `the commit ${of} wants "${path}" ${version}, and ${now.get(path) ?? "none"} is locked now`;
  return undefined;
}

/**
 * Directory with that commit's executables, made of the packages that are installed; quick where they are there already.
 * For a `beforeAll`, behind `describeWith(…, ["earlier-release"], …)`.
 */
export async function earlierExecutables(target: "linux" | "windows", of = commit): Promise<string> {
  const home = homeOf(of);
  await madeOnce(home, async (making) => {
    mkdirSync(making);
    const unpacked = spawnSync("tar", ["-x", "-C", making], { input: git("archive", of).stdout });
    if (unpacked.status !== 0) throw new Error(`Cannot unpack the commit ${of}: ${unpacked.stderr}`);
    symlinkSync(join(root, "node_modules"), join(making, "node_modules"));
  });
  const built = spawnSync(process.execPath, ["run", join(home, "build", "compile.ts"), target], { encoding: "utf8" });
  if (built.status !== 0) throw new Error(`Cannot compile the commit ${of}: ${built.stdout}${built.stderr}`);
  return join(home, "dist", `${target}-x64`);
}

/** Path of a file of that commit's sources; behind `earlierExecutables`. */
export const earlierModule = (path: string): string => join(homeOf(commit), path);

/** Versions of what an executable is made of, by place: its dependencies and the compiler; or of all that there is. */
function lockedPackages(lock: string, all = false): ReadonlyMap<string, string> {
  const read: unknown = JSON.parse(lock);
  const packages = isObject(read) && isObject(read["packages"]) ? Object.entries(read["packages"]) : [];
  return new Map(
    packages.flatMap(([path, entry]) => {
      const isUsed = path !== "" && isObject(entry) && (all || entry["dev"] !== true || path === "node_modules/bun");
      return isUsed ? [[path, String(entry["version"])]] : [];
    }),
  );
}
