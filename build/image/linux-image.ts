import { directoriesOf, type TarEntry } from "../../shared/archive/tar.ts";
import type { DebianPackage, Selection } from "./debian-files.ts";
import { type Image, layerOf } from "./oci-layout.ts";
import type { Architecture } from "./package-source.ts";

/** The image for Linux: the executable, `nft` and their libraries, without a shell. */

export interface LinuxFiles {
  readonly architecture: Architecture;
  readonly executable: Uint8Array;
  readonly packages: readonly DebianPackage[];
  readonly texts: ReadonlyMap<string, Uint8Array>;
}

/** The C library, which both programs need, comes with it. */
export const nftables: Selection = { packages: ["nftables"], files: [/^usr\/sbin\/nft$/] };

/** As Debian has them since its directories are merged into /usr. */
const links = { bin: "usr/bin", lib: "usr/lib", lib64: "usr/lib64", sbin: "usr/sbin", "var/run": "../run" };

export const searchPath = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/** Mount points that runtimes need; they create others themselves, also with a read-only root. */
const mountPoints = ["dev/", "proc/", "run/", "sys/"];

const settings = {
  "etc/group": "root:x:0:\n",
  // Names of etcd's members, by files and the name server; without it the C library asks the name server first.
  "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\n",
};

/**
 * The layer with everything that is not ours, so that releases that change only Pipette share it.
 * @param more links, by path
 */
export function systemLayer(
  packages: readonly DebianPackage[],
  more: Readonly<Record<string, string>> = {},
): readonly TarEntry[] {
  const files = packages.flatMap(({ files: ofPackage }) => ofPackage);
  const written = Object.entries(settings).map(
    ([path, text]): TarEntry => ({ t: "file", path, mode: 0o644, bytes: Buffer.from(text) }),
  );
  const linked = Object.entries({ ...links, ...more }).map(([path, link]): TarEntry => ({ t: "link", path, link }));
  const entries = [...files, ...written, ...linked].sort(byPath);
  const made = [...mountPoints, "usr/bin/", "usr/lib64/", ...entries.map(({ path }) => path)];
  return [...directoriesOf(made), { t: "directory", path: "tmp/", mode: 0o1777 }, ...entries];
}

/** The texts of the licences beside the executable, and the executable also where a shell would look for it. */
function programLayer(executable: Uint8Array, texts: ReadonlyMap<string, Uint8Array>): readonly TarEntry[] {
  const directory = "usr/share/doc/pipette/";
  return [
    { t: "file", path: "pipette", mode: 0o755, bytes: executable },
    ...directoriesOf([directory]),
    { t: "link", path: "usr/bin/pipette", link: "/pipette" },
    ...[...texts].map(([name, bytes]): TarEntry => ({ t: "file", path: `${directory}${name}`, mode: 0o644, bytes })),
  ];
}

export function linuxImage(
  { architecture, executable, packages, texts }: LinuxFiles,
  about: Pick<Image, "created" | "annotations">,
): Image {
  return {
    ...about,
    os: "linux",
    architecture,
    layers: [layerOf(systemLayer(packages)), layerOf(programLayer(executable, texts))],
    config: { Entrypoint: ["/pipette"], Env: [searchPath], WorkingDir: "/" },
  };
}

const byPath = (one: TarEntry, other: TarEntry): number => (one.path < other.path ? -1 : 1);
