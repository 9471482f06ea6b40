import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { reasonOf } from "../shared/reason.ts";
import { type CompiledProgram, compileProgram, stampOf, whyNotSmall } from "./program.ts";

/**
 * `bun run build/compile.ts [linux|windows|all]`: compiles the executables into `dist/`, and does
 * nothing where sources, flags and Bun are those of the last time.
 */

interface Target {
  readonly name: "linux" | "windows";
  readonly platform: "linux-x64" | "windows-x64";
  readonly suffix: "" | ".exe";
}

const targets: readonly Target[] = [
  { name: "linux", platform: "linux-x64", suffix: "" },
  { name: "windows", platform: "windows-x64", suffix: ".exe" },
];

const root = dirname(dirname(fileURLToPath(import.meta.url)));

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
  const directory = join(root, "dist", target.platform);
  const outputs = ["pipette", "pipette-ipam"].map((name) => join(directory, name + target.suffix));
  const small = join(directory, `forward${target.suffix}`);
  const stampFile = join(directory, ".stamp");
  const stamp = stampOf(target);
  if (textOf(stampFile) === stamp && outputs.every((path) => sizeOf(path) !== undefined)) {
    console.log(`${target.name}: nothing has changed`);
    return true;
  }
  const started = performance.now();
  // Beside the results, so that the renames stay inside one file system; named by process, so that two builds do not meet.
  const scratch = join(directory, `.building-${process.pid}`);
  try {
    console.log(`${target.name}: compiling`);
    const compiled = await compiledOrWord(target, scratch, stamp);
    if (compiled === undefined) return false;
    if (compiled.small === undefined) rmSync(small, { force: true });
    else renameSync(compiled.small, small);
    linkSync(compiled.whole, join(scratch, "pipette-ipam"));
    // A rename replaces the file under a running program, which writing into it could not.
    renameSync(join(scratch, "pipette-ipam"), outputs[1]!);
    renameSync(compiled.whole, outputs[0]!);
    writeFileSync(stampFile, stamp);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const whyNot = whyNotSmall(target.platform);
  if (whyNot !== undefined) console.log(`${target.name}: without the small program of forward/, as ${whyNot}`);
  for (const path of outputs) {
    console.log(`${target.name}: ${relative(root, path)}, ${(sizeOf(path)! / 1e6).toFixed(1)} MB, ${seconds} s`);
  }
  return true;
}

/** What was compiled, or a word about why it was not. */
async function compiledOrWord(
  { name, platform }: Target,
  directory: string,
  stamp: string,
): Promise<CompiledProgram | undefined> {
  try {
    return await compileProgram({ platform, directory, stamp });
  } catch (caught) {
    const said = caught instanceof AggregateError ? caught.errors.map(String).join("\n") : reasonOf(caught);
    console.error(said);
    console.error(
      /download|extract/i.test(said)
        ? `Cannot compile for ${name}: Bun's base executable "bun-${platform}" ${Bun.version} is not on this machine and could not be fetched, wanted a reachable npm registry (once; it is kept in Bun's cache)`
        : `Cannot compile for ${name}: the sources do not compile`,
    );
    return undefined;
  }
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
