import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const longestMakingMs = 120_000;

/**
 * Makes a file or a directory that test files share: the first one makes it, the others wait. It gets its name only
 * when it is complete.
 * @param make gets the path to make it under
 */
export async function madeOnce(path: string, make: (making: string) => Promise<void>): Promise<void> {
  const lock = `${path}.lock`;
  const until = performance.now() + longestMakingMs;
  mkdirSync(dirname(path), { recursive: true });
  while (!existsSync(path)) {
    if (takes(lock)) {
      try {
        if (!existsSync(path)) await makeWhole(path, make);
      } finally {
        rmSync(lock);
      }
    } else if (performance.now() > until) {
      throw new Error(
        `Cannot wait for "${path}": another test file has been making it for ${longestMakingMs / 1000} s`,
      );
    } else await Bun.sleep(50);
  }
}

async function makeWhole(path: string, make: (making: string) => Promise<void>): Promise<void> {
  // With its own extension, which compilers look at.
  const making = join(dirname(path), `making-${basename(path)}`);
  rmSync(making, { recursive: true, force: true });
  await make(making);
  renameSync(making, path);
}

/** The lock names its holder as soon as it is there; one that was killed holds it no longer. */
function takes(lock: string): boolean {
  const own = `${lock}.${process.pid}`;
  writeFileSync(own, String(process.pid));
  try {
    linkSync(own, lock);
    return true;
  } catch (caught) {
    if (!(caught instanceof Error && "code" in caught && caught.code === "EEXIST")) throw caught;
    if (!existsSync(`/proc/${holderOf(lock)}`)) rmSync(lock, { force: true });
    return false;
  } finally {
    rmSync(own);
  }
}

function holderOf(lock: string): string {
  try {
    return readFileSync(lock, "utf8");
  } catch {
    return ""; // It has been given back meanwhile.
  }
}
