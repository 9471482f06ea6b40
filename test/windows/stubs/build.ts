import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const compiler = "x86_64-w64-mingw32-gcc";

/** What gcc is told beside `-o`, by the file of Windows that the stub stands for. A later one may link an earlier one. */
const stubs: Readonly<Record<string, readonly string[]>> = {
  "bcryptprimitives.dll": ["-shared", "bcryptprimitives.c", "-ladvapi32"],
  "computenetwork.dll": ["-shared", "computenetwork.c", "channel.c", "-lole32", "-lws2_32"],
  "vmcompute.dll": ["-shared", "vmcompute.c", "computenetwork.dll"],
  "powershell.exe": ["-municode", "command.c", "channel.c", "-lws2_32"],
};

/** Compiles all of our stubs of Windows' own files into `directory`. @returns their names */
export async function buildStubs(directory: string): Promise<readonly string[]> {
  mkdirSync(directory, { recursive: true });
  for (const [name, args] of Object.entries(stubs)) {
    const paths = args.map((arg) => (arg.endsWith(".c") ? join(import.meta.dirname, arg) : arg));
    const command = ["-O1", "-s", "-DWIN32_LEAN_AND_MEAN", "-Wall", "-Werror", "-o", name, ...paths];
    await promisify(execFile)(compiler, command, { cwd: directory });
  }
  return Object.keys(stubs);
}
