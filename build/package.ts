import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { wishOf } from "./release/command-line.ts";
import { releaseExecutables } from "./release/executables.ts";
import { releaseFiles } from "./release/release.ts";
import { versionOf } from "./release/version.ts";

/** `npm run package [-- --platform linux-x64]`: a release in `dist/release/`, the same from the same sources. */

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const { platforms } = wishOf(process.argv.slice(2));
const directory = join(root, "dist", "release");
const cache = join(root, "dist", ".debian");
// Removes files of another release, which this one's checksums would not cover.
rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
const scratch = mkdtempSync(join(root, "dist", ".packaging-"));
try {
  const version = versionOf(root);
  const executables = await releaseExecutables(version.full, platforms, scratch, console.error);
  for (const { name, bytes } of await releaseFiles({
    root,
    version,
    executables,
    cache,
    scratch,
    skip: console.error,
  })) {
    writeFileSync(join(directory, name), bytes);
    console.log(`dist/release/${name}, ${(bytes.length / 1e6).toFixed(1)} MB`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
