import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Version {
  /** As the executable says it: 0.2.0 at the tag v0.2.0; 0.2.0+3.gabc1234 three commits later; with ".dirty" where files differ. */
  readonly full: string;
  /** As tags of images and names of files can have it, which know no "+". */
  readonly tag: string;
  /** Of the commit, in seconds since 1970. */
  readonly time: number;
  readonly commit: string | undefined;
}

/**
 * Of the sources in `root`: by the tag, or, where there is none yet, by package.json and the commit.
 * @throws where a tag and package.json disagree
 */
export function versionOf(root: string): Version {
  const { version: declared }: { version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const commit = git(root, "rev-parse", "HEAD");
  // Sources without their history, as somebody packed them.
  if (commit === undefined) return { full: declared, tag: declared, time: 0, commit };
  const described = git(root, "describe", "--tags", "--match", "v[0-9]*", "--long", "--dirty", "--abbrev=7");
  const [, tagged, since = "0", hash = commit.slice(0, 7), dirty] =
    /^v(.+)-(\d+)-g([0-9a-f]+)(-dirty)?$/.exec(described ?? "") ?? [];
  const changed = described === undefined ? git(root, "status", "--porcelain", "-uno") !== "" : dirty !== undefined;
  if (tagged !== undefined && since === "0" && tagged !== declared)
    throw new Error(`Cannot name the release: the tag is "v${tagged}" and package.json says "${declared}"`);
  const marks = [
    ...(tagged === undefined ? [`g${hash}`] : since === "0" ? [] : [since, `g${hash}`]),
    ...(changed ? ["dirty"] : []),
  ];
  const full = [tagged ?? declared, ...(marks.length === 0 ? [] : [marks.join(".")])].join("+");
  return { full, tag: full.replace("+", "-"), time: Number(git(root, "log", "-1", "--format=%ct")), commit };
}

/** `undefined` where it fails: no history, no tag. */
function git(root: string, ...args: readonly string[]): string | undefined {
  try {
    return execFileSync("git", ["-C", root, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}
