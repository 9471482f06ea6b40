import { createHash } from "node:crypto";
import { join } from "node:path";
import { type TarEntry, tar } from "../../shared/archive/tar.ts";
import { gzip } from "../archive/deflate.ts";
import { zip } from "../archive/zip.ts";
import { chartPackage } from "./chart.ts";
import { clientPackage } from "./client-package.ts";
import { bundledPackages, runtimeComponents, smallProgramComponents } from "./components.ts";
import { debOf } from "./deb.ts";
import type { Executables } from "./executables.ts";
import { type FileEntry, shippedFiles } from "./files.ts";
import { imagesOf, type MadeFile } from "./images.ts";
import { licenceTexts } from "./licences.ts";
import { sbomOf } from "./sbom.ts";
import type { Version } from "./version.ts";

export interface ReleaseInputs {
  readonly root: string;
  readonly version: Version;
  readonly executables: Executables;
  /** A directory for packages of Debian that have to be fetched. */
  readonly cache: string;
  /** For files that programs write on the way. */
  readonly scratch: string;
  /** Hears what cannot be made here, and why. */
  skip(sentence: string): void;
}

/** Everything of a release, made of the sources in `root` and these executables: the same of the same, byte for byte. */
export async function releaseFiles(inputs: ReleaseInputs): Promise<readonly MadeFile[]> {
  const { root, version, executables, cache, scratch, skip } = inputs;
  const texts = await licenceTexts(root);
  const images = imagesOf({ executables, version, texts, cache, repository: "pipette", skip });
  const client = gzip(tar(await clientPackage(root, version.full, scratch), version.time));
  const chart = chartPackage(root, version);
  const packages = await bundledPackages(root, join(root, "main.ts"));
  const parts = { runtime: runtimeComponents(), small: smallProgramComponents(), packages, debian: images.debian };
  const sbom = sbomOf({ version, executables, ...parts });
  const files: MadeFile[] = [
    ...programs(inputs, texts),
    ...images.archives,
    { name: `pipette-ipam-client-${version.tag}.tgz`, bytes: client },
    ...(chart === undefined ? [] : [{ name: `pipette-chart-${version.tag}.tgz`, bytes: chart }]),
    { name: "sbom.cdx.json", bytes: Buffer.from(sbom) },
  ];
  return [...files, { name: "SHA256SUMS", bytes: Buffer.from(sums(files)) }];
}

/** As `sha256sum --check` reads them. */
function sums(files: readonly MadeFile[]): string {
  const lines = files.map(({ name, bytes }) => `${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`);
  return lines.join("");
}

/** What a machine without a cluster installs: archives and packages of the executables with documents and samples. */
function programs({ root, version, executables }: ReleaseInputs, texts: Texts): readonly MadeFile[] {
  const shipped = shippedFiles(root);
  const made: MadeFile[] = [];
  for (const [platform, architecture] of [
    ["linux-x64", "amd64"],
    ["linux-arm64", "arm64"],
  ] as const) {
    const executable = executables[platform];
    if (executable === undefined) continue;
    const deb = debOf({ root, architecture, executable, version, texts, shipped });
    const top = `pipette-${version.tag}-${platform}`;
    made.push(
      { name: `${top}.tar.gz`, bytes: gzip(tar(archiveOf(top, executable, texts, shipped), version.time)) },
      { name: `pipette_${version.full}_${architecture}.deb`, bytes: deb },
    );
  }
  const exe = executables["windows-x64"];
  if (exe === undefined) return made;
  const top = `pipette-${version.tag}-windows-x64`;
  const files = [...textEntries(texts), ...shipped];
  const entries = [
    { path: "pipette.exe", bytes: exe },
    // Windows' own tools know no links in archives: "pipette install" makes the second name.
    ...files.map(({ path, bytes }) => ({ path, bytes })),
  ];
  made.push({
    name: `${top}.zip`,
    bytes: zip(entries.map(({ path, bytes }) => ({ path: `${top}/${path}`, bytes }))),
  });
  return made;
}

type Texts = ReadonlyMap<string, Uint8Array>;

const textEntries = (texts: Texts): readonly FileEntry[] =>
  [...texts].map(([path, bytes]) => ({ t: "file", path, mode: 0o644, bytes }));

function archiveOf(
  top: string,
  executable: Uint8Array,
  texts: Texts,
  shipped: readonly FileEntry[],
): readonly TarEntry[] {
  const files = [...textEntries(texts), ...shipped].map((entry) => ({ ...entry, path: `${top}/${entry.path}` }));
  return [
    { t: "file", path: `${top}/pipette`, mode: 0o755, bytes: executable },
    { t: "hardlink", path: `${top}/pipette-ipam`, target: `${top}/pipette` },
    ...files,
  ];
}
