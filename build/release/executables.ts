import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compileProgram, type Platform, whyNotSmall } from "../program.ts";

/** Bytes of the executables of a release. */
export type Executables = Readonly<Partial<Record<Platform, Uint8Array>>>;

/**
 * Compiles them with the release's version; what `npm run build` leaves in `dist/` says only that of package.json.
 * @param say hears of an executable that carries no small program
 */
export async function releaseExecutables(
  version: string,
  wanted: readonly Platform[],
  scratch: string,
  say: (sentence: string) => void,
): Promise<Executables> {
  const compiled: Partial<Record<Platform, Uint8Array>> = {};
  for (const platform of wanted) {
    const whyNot = whyNotSmall(platform);
    if (whyNot !== undefined) say(`The executable for ${platform} is without the small program of forward/: ${whyNot}`);
    const { whole } = await compileProgram({ platform, version, directory: join(scratch, platform) });
    compiled[platform] = readFileSync(whole);
  }
  return compiled;
}
