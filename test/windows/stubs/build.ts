import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const compiler = "x86_64-w64-mingw32-gcc";

interface Stub {
  /** File of Windows that it stands for. */
  readonly name: string;
  readonly sources: readonly string[];
  readonly flags: readonly string[];
}

const stubs: readonly Stub[] = [
  { name: "bcryptprimitives.dll", sources: ["bcryptprimitives.c"], flags: ["-shared", "-ladvapi32"] },
];

/** Compiles all of our stubs of Windows' own files into `directory`. */
export async function buildStubs(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  await Promise.all(stubs.map((stub) => compile(stub, join(directory, stub.name))));
}

async function compile({ sources, flags }: Stub, output: string): Promise<void> {
  const paths = sources.map((name) => join(import.meta.dirname, name));
  await promisify(execFile)(compiler, ["-O2", "-s", "-Wall", "-Werror", "-municode", ...paths, "-o", output, ...flags]);
}
