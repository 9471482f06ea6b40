import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { TarEntry } from "../../shared/archive/tar.ts";

export type FileEntry = Extract<TarEntry, { t: "file" }>;

/** What of the sources goes with the executables, by its path in them. */
const shipped = [
  "CONTRIBUTING.md",
  "README.md",
  "SECURITY.md",
  "conf",
  "docs",
  "shared/proto/cni.proto",
  "shared/proto/health.proto",
  "shared/proto/pipette.proto",
];

/** What lies beside them in every release, under this name. */
const besides = ["LICENSE", "THIRD-PARTY.txt"];

/** Files for whoever installs: documents and samples of configuration, in the order of their paths. */
export function shippedFiles(root: string): readonly FileEntry[] {
  return shipped.flatMap((path) => filesAt(root, path)).sort((one, other) => (one.path < other.path ? -1 : 1));
}

function filesAt(root: string, path: string): readonly FileEntry[] {
  const place = join(root, path);
  const stat = statSync(place);
  if (stat.isDirectory()) return readdirSync(place).flatMap((name) => filesAt(root, `${path}/${name}`));
  const bytes = path.endsWith(".md")
    ? Buffer.from(withoutSourceLinks(path, readFileSync(place, "utf8")))
    : readFileSync(place);
  return [{ t: "file", path, mode: (stat.mode & 0o100) === 0 ? 0o644 : 0o755, bytes }];
}

/** A release has no sources: a link to one becomes its words, with the path in brackets. */
export function withoutSourceLinks(page: string, text: string): string {
  return text.replace(/\[([^\]]+)\]\((?!https?:|#)([^)#]+)[^)]*\)/g, (link, words: string, target: string) => {
    const path = new URL(target, `file:///${page}`).pathname.slice(1);
    const stays = [...shipped, ...besides].some((there) => path === there || path.startsWith(`${there}/`));
    if (stays) return link;
    return words === path || words === `\`${path}\`` ? words : `${words} (${path})`;
  });
}
