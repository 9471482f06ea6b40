import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { TarEntry } from "../archive/tar.ts";

export type FileEntry = Extract<TarEntry, { t: "file" }>;

/** What of the sources goes with the executables, by its path in them: all that the documents link to. */
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

/** Files for whoever installs: documents and samples of configuration, in the order of their paths. */
export function shippedFiles(root: string): readonly FileEntry[] {
  return shipped.flatMap((path) => filesAt(root, path)).sort((one, other) => (one.path < other.path ? -1 : 1));
}

function filesAt(root: string, path: string): readonly FileEntry[] {
  const place = join(root, path);
  const stat = statSync(place);
  if (stat.isDirectory()) return readdirSync(place).flatMap((name) => filesAt(root, `${path}/${name}`));
  return [{ t: "file", path, mode: (stat.mode & 0o100) === 0 ? 0o644 : 0o755, bytes: readFileSync(place) }];
}
