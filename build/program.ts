import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { compileExecutable } from "./bundle.ts";
import { compileSmallProgram, type System, whyNoSmallProgram } from "./forward.ts";
import { licencesInExecutable } from "./release/licences.ts";

/** Pipette for one platform: the whole program, with the small one that is installed in front of it embedded. */

export const platforms = ["linux-x64", "linux-arm64", "windows-x64"] as const;
export type Platform = (typeof platforms)[number];

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Files that end up in the executable or decide how it is made. */
const inputs = [
  ...["main.ts", "cli.ts", "cni", "ipam", "agent", "controller", "operator", "ui", "shared", "forward"],
  ...["package.json", "package-lock.json"],
  ...["build/program.ts", "build/bundle.ts", "build/seal.ts", "build/forward.ts"],
  ...["LICENSE", "build/release/licences.ts", "build/release/components.ts"],
];

export interface ProgramOptions {
  readonly platform: Platform;
  /** The version of a release; absent: that of package.json. */
  readonly version?: string;
}

export interface CompiledProgram {
  readonly whole: string;
  /** Path of the small program as a file of its own, for trying it; absent if it cannot be compiled here. */
  readonly small?: string;
}

/** Hash of everything that a program is made of. Its first half is the build id of forward/PROTOCOL.md. */
export function stampOf({ platform, version }: ProgramOptions): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([Bun.version, platform, version ?? "", whyNotSmall(platform) ?? ""]));
  for (const path of inputs.flatMap((input) => filesIn(join(root, input)))) {
    hash.update(`\0${relative(root, path)}\0`);
    hash.update(readFileSync(path));
  }
  return hash.digest("hex");
}

/**
 * Compiles both into `directory`, with one build id.
 * @throws where the sources do not compile, or Bun's base executable is not there
 */
export async function compileProgram(
  options: ProgramOptions & { readonly directory: string; readonly stamp?: string },
): Promise<CompiledProgram> {
  const { platform, version, directory, stamp = stampOf(options) } = options;
  const suffix = platform === "windows-x64" ? ".exe" : "";
  const [whole, small] = [join(directory, `pipette${suffix}`), join(directory, `forward${suffix}`)];
  const buildId = stamp.slice(0, 32);
  mkdirSync(directory, { recursive: true });
  const isSmallThere = whyNotSmall(platform) === undefined;
  if (isSmallThere) await compileSmallProgram({ system: systemOf(platform), outfile: small, buildId });
  await compileExecutable({
    entry: join(root, "main.ts"),
    base: `bun-${platform}`,
    outfile: whole,
    ...(version === undefined ? {} : { version }),
    licences: await licencesInExecutable(root),
    buildId,
    ...(isSmallThere ? { smallProgram: readFileSync(small) } : {}),
  });
  return { whole, ...(isSmallThere ? { small } : {}) };
}

/** Why there is no small program for a platform here; `undefined` where there is. Everything works without it. */
export const whyNotSmall = (platform: Platform): string | undefined =>
  platform === "linux-arm64" ? "Debian has no compiler for it" : whyNoSmallProgram(systemOf(platform));

const systemOf = (platform: Platform): System => (platform === "windows-x64" ? "windows" : "linux");

function filesIn(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .filter((name) => !name.endsWith(".test.ts") && !name.endsWith(".md"))
    .flatMap((name) => filesIn(join(path, name)));
}
