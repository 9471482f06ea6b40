import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { madeOnce } from "../../support/made-once.ts";
import { buildStubs } from "../stubs/build.ts";
import { WineServer } from "./wine-server.ts";

/** Made once per run, in about 6 seconds and 700 MB; each test file gets a copy. */
const templateName = "template";
/** Of a copy, in a directory of its own. */
export const prefixName = "prefix";

/** In System32; a stub that is not named here has its own name there. */
const placesOf: Readonly<Record<string, readonly string[]>> = {
  "powershell.exe": ["WindowsPowerShell/v1.0/powershell.exe", "netsh.exe", "route.exe"],
};

/** The directory of a prefix's drive C. */
export const driveOf = (prefix: string): string => join(prefix, "drive_c");

export const system32Of = (prefix: string): string => join(driveOf(prefix), "windows", "system32");

/**
 * Makes `prefix`: a Windows 10 with our stubs in place, in which nothing runs. The first call of a run makes the
 * template in `runDirectory`.
 */
export async function copyTemplate(runDirectory: string, prefix: string): Promise<void> {
  const template = join(runDirectory, templateName);
  await madeOnce(template, (making) => makeTemplate(join(runDirectory, "stubs"), making));
  // Links in place of the files: nobody writes into the files of Windows, and who replaces one makes a new one.
  await promisify(execFile)("cp", ["--archive", "--link", template, prefix]);
  for (const name of readdirSync(template).filter((entry) => entry.endsWith(".reg"))) {
    // But the registry is written in place where it has several links.
    rmSync(join(prefix, name));
    cpSync(join(template, name), join(prefix, name));
  }
}

async function makeTemplate(stubs: string, making: string): Promise<void> {
  mkdirSync(making);
  const [names] = await Promise.all([buildStubs(stubs), boot(making)]);
  for (const name of names) {
    for (const place of placesOf[name] ?? [name]) {
      const path = join(system32Of(making), place);
      mkdirSync(dirname(path), { recursive: true });
      cpSync(join(stubs, name), path);
    }
  }
}

async function boot(prefix: string): Promise<void> {
  await using server = await WineServer.start(prefix);
  await server.run(["wineboot", "--init"]);
  await server.run(["winecfg", "-v", "win10"]);
}
