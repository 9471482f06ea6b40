import type { TarEntry } from "../../shared/archive/tar.ts";
import { emptyHive } from "./hive.ts";
import { type Image, layerOf } from "./oci-layout.ts";
import { accessTo, administrators, descriptorOf, localSystem, users } from "./security-descriptor.ts";

/** The image for HostProcess containers, which are processes of the host: it only carries files there. */

export interface WindowsFiles {
  /** pipette.exe */
  readonly executable: Uint8Array;
  readonly texts: ReadonlyMap<string, Uint8Array>;
}

/** FILE_ATTRIBUTE_DIRECTORY and FILE_ATTRIBUTE_ARCHIVE. */
const attributes = { directory: "16", file: "32" } as const;
/** FILE_ALL_ACCESS, and FILE_GENERIC_READ with FILE_GENERIC_EXECUTE. */
const rights = { all: 0x1f_01ff, readAndExecute: 0x12_00a9 } as const;
/** OBJECT_INHERIT_ACE and CONTAINER_INHERIT_ACE. */
const inherited = 0x3;

/** Without a descriptor of its own a file may not be started. */
const descriptor = (flags: number): string =>
  descriptorOf([
    accessTo(administrators, rights.all, flags),
    accessTo(localSystem, rights.all, flags),
    accessTo(users, rights.readAndExecute, flags),
  ]).toString("base64");

const created = { "LIBARCHIVE.creationtime": "0" };

const directory = (path: string): TarEntry => ({
  t: "directory",
  path: `${path}/`,
  mode: 0o755,
  pax: { ...created, "MSWINDOWS.fileattr": attributes.directory, "MSWINDOWS.rawsd": descriptor(inherited) },
});

const file = (path: string, bytes: Uint8Array): TarEntry => ({
  t: "file",
  path,
  mode: 0o755,
  bytes,
  pax: { ...created, "MSWINDOWS.fileattr": attributes.file, "MSWINDOWS.rawsd": descriptor(0) },
});

const configDirectory = "Files/Windows/System32/config";
const hives = ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"];

/** The files that Windows requires in any image's lowest layer, each directory before its content. */
const baseLayer = (): readonly TarEntry[] => [
  ...["Files", "Files/Windows", "Files/Windows/System32", configDirectory].map(directory),
  ...hives.map((name) => file(`${configDirectory}/${name}`, emptyHive())),
];

const programLayer = ({ executable, texts }: WindowsFiles): readonly TarEntry[] => [
  ...["Files", "Hives"].map(directory),
  ...[...texts].map(([name, bytes]) => file(`Files/${name}`, bytes)),
  file("Files/pipette.exe", executable),
];

export function windowsImage(files: WindowsFiles, about: Pick<Image, "created" | "annotations">): Image {
  return {
    ...about,
    os: "windows",
    // No "os.version", so that every Windows accepts it, which is right because nothing of the image's own system runs.
    architecture: "amd64",
    layers: [layerOf(baseLayer()), layerOf(programLayer(files))],
    config: {
      Entrypoint: ["$env:CONTAINER_SANDBOX_MOUNT_POINT\\pipette.exe"],
      Env: ["PATH=C:\\Windows\\System32;C:\\Windows;C:\\Windows\\System32\\WindowsPowerShell\\v1.0"],
    },
  };
}
