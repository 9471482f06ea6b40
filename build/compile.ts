import { createHash } from "node:crypto";
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { reasonOf } from "../shared/reason.ts";
import { compileExecutable, type Executable } from "./bundle.ts";
import { licencesInExecutable } from "./release/licences.ts";

/**
 * `bun run build/compile.ts [linux|windows|all]`: compiles the executables into `dist/`, and does
 * nothing where sources, flags and Bun are those of the last time.
 */

interface Target {
  readonly name: "linux" | "windows";
  readonly base: Executable["base"];
  readonly directory: string;
  readonly suffix: "" | ".exe";
}

const targets: readonly Target[] = [
  { name: "linux", base: "bun-linux-x64", directory: "linux-x64", suffix: "" },
  { name: "windows", base: "bun-windows-x64", directory: "windows-x64", suffix: ".exe" },
];

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Files that end up in the executable or decide how it is made: a change in any of them compiles again. */
const inputs = [
  ...["main.ts", "cli.ts", "cni", "ipam", "agent", "shared"],
  ...["package.json", "package-lock.json", "build/compile.ts", "build/bundle.ts", "build/seal.ts"],
  ...["LICENSE", "build/release/licences.ts", "build/release/components.ts"],
];

process.exitCode = await main(process.argv[2] ?? "all");

async function main(wanted: string): Promise<number> {
  const chosen = targets.filter((target) => wanted === "all" || wanted === target.name);
  if (chosen.length === 0) {
    console.error(`Cannot compile: the target is "${wanted}", wanted linux, windows or all`);
    return 2;
  }
  for (const target of chosen) if (!(await compile(target))) return 1;
  return 0;
}

async function compile(target: Target): Promise<boolean> {
  const directory = join(root, "dist", target.directory);
  const outputs = ["pipette", "pipette-ipam"].map((name) => join(directory, name + target.suffix));
  const stampFile = join(directory, ".stamp");
  const stamp = stampOf(target);
  if (textOf(stampFile) === stamp && outputs.every((path) => sizeOf(path) !== undefined)) {
    console.log(`${target.name}: nothing has changed`);
    return true;
  }
  const started = performance.now();
  // Beside the results, so that the renames stay inside one file system; named by process, so that two builds do not meet.
  const scratch = join(directory, `.building-${process.pid}`);
  mkdirSync(scratch, { recursive: true });
  try {
    if (!(await bundle(target, join(scratch, "pipette")))) return false;
    const built = join(scratch, `pipette${target.suffix}`);
    linkSync(built, join(scratch, "pipette-ipam"));
    // A rename replaces the file under a running program, which writing into it could not.
    renameSync(join(scratch, "pipette-ipam"), outputs[1]!);
    renameSync(built, outputs[0]!);
    writeFileSync(stampFile, stamp);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  for (const path of outputs) {
    console.log(`${target.name}: ${relative(root, path)}, ${(sizeOf(path)! / 1e6).toFixed(1)} MB, ${seconds} s`);
  }
  return true;
}

async function bundle(target: Target, outfile: string): Promise<boolean> {
  console.log(`${target.name}: compiling`);
  try {
    const licences = await licencesInExecutable(root);
    await compileExecutable({ entry: join(root, "main.ts"), base: target.base, outfile, licences });
    return true;
  } catch (caught) {
    const said = caught instanceof AggregateError ? caught.errors.map(String).join("\n") : reasonOf(caught);
    console.error(said);
    console.error(
      /download|extract/i.test(said)
        ? `Cannot compile for ${target.name}: Bun's base executable "${target.base}" ${Bun.version} is not on this machine and could not be fetched, wanted a reachable npm registry (once; it is kept in Bun's cache)`
        : `Cannot compile for ${target.name}: the sources do not bundle`,
    );
    return false;
  }
}

/** Hash of everything that the executable depends on. */
function stampOf(target: Target): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([Bun.version, target]));
  for (const path of inputs.flatMap((input) => filesIn(join(root, input)))) {
    hash.update(`\0${relative(root, path)}\0`);
    hash.update(readFileSync(path));
  }
  return hash.digest("hex");
}

function filesIn(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .filter((name) => !name.endsWith(".test.ts"))
    .flatMap((name) => filesIn(join(path, name)));
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
