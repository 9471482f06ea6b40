import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TarEntry, tar } from "../archive/tar.ts";
import { type Architecture, type DebianPackage, debianPackages } from "../image/debian-files.ts";
import { linuxImage } from "../image/linux-image.ts";
import { type Image, ociLayout } from "../image/oci-layout.ts";
import { windowsImage } from "../image/windows-image.ts";
import type { Executables } from "./executables.ts";
import type { Version } from "./version.ts";

export interface MadeFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface Images {
  /** One archive for each machine, as `ctr images import`, `podman load` and `skopeo` read it. */
  readonly archives: readonly MadeFile[];
  /** The layouts' files: of Linux, with an index for its architectures, and of Windows. */
  readonly layouts: Readonly<Record<string, readonly TarEntry[]>>;
  /** What the images for Linux hold of Debian, by architecture. */
  readonly packages: ReadonlyMap<Architecture, readonly DebianPackage[]>;
}

export interface ImageInputs {
  readonly executables: Executables;
  readonly version: Version;
  /** LICENSE and what else goes with a program. */
  readonly texts: ReadonlyMap<string, Uint8Array>;
  /** A directory for packages of Debian that have to be fetched. */
  readonly cache: string;
  /** What stands before ":" in the images' names, without the registry that runtimes think of by themselves. */
  readonly repository: string;
}

const architectures = { "linux-x64": "amd64", "linux-arm64": "arm64" } as const;

/** Makes the images of those executables that are there. */
export function imagesOf({ executables, version, texts, cache, repository }: ImageInputs): Images {
  const about = {
    created: version.time,
    annotations: {
      "org.opencontainers.image.title": "pipette",
      "org.opencontainers.image.licenses": "Apache-2.0",
      "org.opencontainers.image.version": version.full,
      ...(version.commit === undefined ? {} : { "org.opencontainers.image.revision": version.commit }),
    },
  };
  const packages = new Map<Architecture, readonly DebianPackage[]>();
  const linux: Image[] = [];
  for (const platform of ["linux-x64", "linux-arm64"] as const) {
    const executable = executables[platform];
    if (executable === undefined) continue;
    const architecture = architectures[platform];
    const ofDebian = debianPackages(architecture, cache);
    packages.set(architecture, ofDebian);
    linux.push(linuxImage({ architecture, executable, packages: ofDebian, texts }, about));
  }
  const exe = executables["windows-x64"];
  const windows = exe === undefined ? [] : [windowsImage({ executable: exe, texts }, about)];
  const named = (name: string) => ({ repository: completed(name), tag: version.tag });
  const archives = [...linux, ...windows].map((image) => ({
    name: `pipette-${version.tag}-${image.os}-${image.architecture}.image.tar`,
    bytes: tar(ociLayout([image], named(image.os === "linux" ? repository : `${repository}-windows`))),
  }));
  const layouts = {
    ...(linux.length > 0 ? { linux: ociLayout(linux, named(repository)) } : {}),
    ...(windows.length > 0 ? { windows: ociLayout(windows, named(`${repository}-windows`)) } : {}),
  };
  return { archives, layouts, packages };
}

/** As a kubelet completes it: "pipette" is docker.io/library/pipette, "me/pipette" docker.io/me/pipette. */
function completed(name: string): string {
  const [first = "", ...rest] = name.split("/");
  if (rest.length === 0) return `docker.io/library/${name}`;
  return /[.:]|^localhost$/.test(first) ? name : `docker.io/${name}`;
}

/** Writes a layout anew as a directory. */
export function writeLayout(directory: string, entries: readonly TarEntry[]): void {
  rmSync(directory, { recursive: true, force: true });
  for (const entry of entries) {
    if (entry.t !== "file") continue;
    const path = join(directory, entry.path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, entry.bytes);
  }
}
