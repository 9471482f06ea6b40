import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { wishOf } from "./release/command-line.ts";
import { releaseExecutables } from "./release/executables.ts";
import { imagesOf, writeLayout } from "./release/images.ts";
import { licenceTexts } from "./release/licences.ts";
import { versionOf } from "./release/version.ts";

/**
 * `npm run image [-- --platform linux-x64] [--name REPOSITORY] [--tag TAG]`: images without docker or a registry, in
 * `dist/image/`: for each machine an archive that `ctr images import` and `podman load` read, and OCI layouts for
 * `skopeo copy --all`.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const { platforms, name: repository, tag } = wishOf(process.argv.slice(2));
const directory = join(root, "dist", "image");
mkdirSync(directory, { recursive: true });
const scratch = mkdtempSync(join(directory, ".building-"));
try {
  const found = versionOf(root);
  const version = { ...found, tag: tag ?? found.tag };
  const executables = await releaseExecutables(version.full, platforms, scratch, console.error);
  const texts = await licenceTexts(root);
  const cache = join(root, "dist", ".debian");
  const { archives, layouts } = imagesOf({ executables, version, texts, cache, repository, skip: console.error });
  for (const { name, bytes } of archives) {
    writeFileSync(join(directory, name), bytes);
    console.log(`dist/image/${name}, ${(bytes.length / 1e6).toFixed(1)} MB`);
  }
  for (const [os, entries] of Object.entries(layouts)) {
    writeLayout(join(directory, os), entries);
    console.log(`dist/image/${os}, an OCI layout`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
