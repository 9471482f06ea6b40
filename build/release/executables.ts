import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compileExecutable, type Executable } from "../bundle.ts";
import { licencesInExecutable } from "./licences.ts";

export const platforms = ["linux-x64", "linux-arm64", "windows-x64"] as const;
export type Platform = (typeof platforms)[number];

/** Bytes of the executables of a release. */
export type Executables = Readonly<Partial<Record<Platform, Uint8Array>>>;

/** Compiles them with the release's version; what `npm run build` leaves in `dist/` says only that of package.json. */
export async function releaseExecutables(
  root: string,
  version: string,
  wanted: readonly Platform[],
  scratch: string,
): Promise<Executables> {
  const compiled: Partial<Record<Platform, Uint8Array>> = {};
  const licences = await licencesInExecutable(root);
  for (const platform of wanted) {
    const base: Executable["base"] = `bun-${platform}`;
    const outfile = join(scratch, platform, platform === "windows-x64" ? "pipette.exe" : "pipette");
    mkdirSync(join(scratch, platform), { recursive: true });
    await compileExecutable({ entry: join(root, "main.ts"), base, outfile, version, licences });
    compiled[platform] = readFileSync(outfile);
  }
  return compiled;
}
