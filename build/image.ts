import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Platform, platforms, releaseExecutables } from "./release/executables.ts";
import { imagesOf, writeLayout } from "./release/images.ts";
import { licenceTexts } from "./release/licences.ts";
import { versionOf } from "./release/version.ts";

/**
 * `npm run image [-- --platform linux-x64] [--name REPOSITORY]`: images without docker or a registry, in `dist/image/`:
 * for each machine an archive that `ctr images import` and `podman load` read, and OCI layouts for `skopeo copy --all`.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      platform: { type: "string", multiple: true, default: [...platforms] },
      name: { type: "string", default: "pipette" },
    },
  });
  const wanted = platforms.filter((platform) => values.platform.includes(platform));
  const unknown = values.platform.filter((name) => !platforms.includes(name as Platform));
  if (unknown.length > 0) {
    console.error(`Cannot make an image: the platform is "${unknown[0]}", wanted one of ${platforms.join(", ")}`);
    return 2;
  }
  const directory = join(root, "dist", "image");
  mkdirSync(directory, { recursive: true });
  const scratch = mkdtempSync(join(directory, ".building-"));
  try {
    const version = versionOf(root);
    const executables = await releaseExecutables(root, version.full, wanted, scratch);
    const texts = await licenceTexts(root);
    const cache = join(root, "dist", ".debian");
    const { archives, layouts } = imagesOf({ executables, version, texts, cache, repository: values.name });
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
  return 0;
}
