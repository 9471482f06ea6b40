import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TarEntry, tar } from "../../shared/archive/tar.ts";
import { reasonOf } from "../../shared/reason.ts";
import { type DebianPackage, DebianPackages } from "../image/debian-files.ts";
import { linuxImage, nftables } from "../image/linux-image.ts";
import { type Image, ociLayout } from "../image/oci-layout.ts";
import { openVswitch, openVswitchImage } from "../image/openvswitch-image.ts";
import type { Architecture } from "../image/package-source.ts";
import { windowsImage } from "../image/windows-image.ts";
import type { Executables } from "./executables.ts";
import type { Version } from "./version.ts";

export interface MadeFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** What an image for Linux holds of Debian. */
export interface DebianInImage {
  readonly image: "pipette" | "pipette-openvswitch";
  readonly architecture: Architecture;
  readonly packages: readonly DebianPackage[];
}

export interface Images {
  /** One archive for each image and machine, as `ctr images import`, `podman load` and `skopeo` read it. */
  readonly archives: readonly MadeFile[];
  /** The layouts' files: of Linux and of Open vSwitch, each with an index for its architectures, and of Windows. */
  readonly layouts: Readonly<Record<string, readonly TarEntry[]>>;
  readonly debian: readonly DebianInImage[];
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
  /** Hears why an image cannot be made here. */
  skip(sentence: string): void;
}

const architectures = { "linux-x64": "amd64", "linux-arm64": "arm64" } as const;

/** Makes the images of those executables that are there, and, for the same machines, that of Open vSwitch. */
export function imagesOf(inputs: ImageInputs): Images {
  const { executables, version, texts, cache, repository } = inputs;
  const made: Made[] = [];
  const exe = executables["windows-x64"];
  for (const platform of ["linux-x64", "linux-arm64"] as const) {
    const executable = executables[platform];
    if (executable === undefined) continue;
    const architecture = architectures[platform];
    const debian = new DebianPackages(architecture, cache);
    const packages = debian.of(nftables);
    const image = linuxImage({ architecture, executable, packages, texts }, about("pipette", version, packages));
    made.push({ layout: "linux", image, debian: { image: "pipette", architecture, packages } });
    const vswitch = openVswitchFor(architecture, debian, version);
    if (typeof vswitch === "string") inputs.skip(vswitch);
    else made.push(vswitch);
  }
  if (exe !== undefined)
    made.push({ layout: "windows", image: windowsImage({ executable: exe, texts }, about("pipette", version)) });
  const named = (layout: Layout) => ({ repository: completed(`${repository}${suffixes[layout]}`), tag: version.tag });
  const archives = made.map(({ layout, image }) => ({
    name: `pipette${layout === "openvswitch" ? suffixes[layout] : ""}-${version.tag}-${image.os}-${image.architecture}.image.tar`,
    bytes: tar(ociLayout([image], named(layout))),
  }));
  const layouts = (["linux", "openvswitch", "windows"] as const).flatMap((layout) => {
    const images = made.flatMap((each) => (each.layout === layout ? [each.image] : []));
    return images.length === 0 ? [] : [[layout, ociLayout(images, named(layout))] as const];
  });
  const debian = made.flatMap((each) => each.debian ?? []);
  return { archives, layouts: Object.fromEntries(layouts), debian };
}

type Layout = "linux" | "openvswitch" | "windows";

interface Made {
  readonly layout: Layout;
  readonly image: Image;
  readonly debian?: DebianInImage;
}

/** Behind the repository's name. */
const suffixes = { linux: "", openvswitch: "-openvswitch", windows: "-windows" } as const;

/** Not every machine that can make the others has its packages, or apt and a way to Debian's archive. @returns why not */
export function openVswitchFor(architecture: Architecture, debian: DebianPackages, version: Version): Made | string {
  const image = "pipette-openvswitch";
  try {
    const packages = debian.of(openVswitch);
    const made = openVswitchImage(architecture, packages, about(image, version, packages));
    return { layout: "openvswitch", image: made, debian: { image, architecture, packages } };
  } catch (caught) {
    const reason = reasonOf(caught);
    return `There is no image "${image}" for ${architecture}: ${reason}`;
  }
}

/** Labels of an image. Of Debian's packages it tells the versions, which are what is new in it from one day to the next. */
function about(title: DebianInImage["image"], version: Version, packages: readonly DebianPackage[] = []) {
  const versions = packages.map((each) => `${each.name}=${each.version}`).join(" ");
  return {
    created: version.time,
    annotations: {
      "org.opencontainers.image.title": title,
      // Of ours. Open vSwitch's image has the texts of its packages, and no one word for them.
      ...(title === "pipette" ? { "org.opencontainers.image.licenses": "Apache-2.0" } : {}),
      "org.opencontainers.image.version": version.full,
      ...(version.commit === undefined ? {} : { "org.opencontainers.image.revision": version.commit }),
      ...(versions === "" ? {} : { "io.pipette.debian-packages": versions }),
    },
  };
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
