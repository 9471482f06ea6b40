import { lstatSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { TarEntry } from "../../shared/archive/tar.ts";
import { AptRoot } from "./apt-root.ts";
import { InstalledPackages, machineArchitecture } from "./installed-packages.ts";
import { type Architecture, inUsr, type PackageSource } from "./package-source.ts";

/** What images take from Debian: some programs, and the libraries that they depend on. */

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly source: string;
  /** What the image takes of it, by path from the image's root. */
  readonly files: readonly TarEntry[];
}

export interface Selection {
  readonly packages: readonly string[];
  /** Files of these packages, by path from the image's root. Of others that they depend on the image has the libraries. */
  readonly files: readonly RegExp[];
}

/** The package with the licence texts that other packages refer to; nothing else of it is used. */
const licenceTexts = "base-files";
const takenOfLicenceTexts = [/^usr\/share\/common-licenses\/[\w.-]+$/];

const takenOfAll = [
  // The loader and the libraries, not their modules for character sets and auditing.
  /^usr\/lib(64)?\/([\w-]+\/)?[^/]+\.so(\.[\d.]+)?$/,
  /^usr\/share\/doc\/[^/]+\/copyright$/,
  // Where it is a link, to that of a package of the same sources.
  /^usr\/share\/doc\/[^/]+$/,
];

/**
 * Debian's section of libraries, with the C library and zlib1g; other dependencies of a package are not needed here.
 */
const sectionOfLibraries = "libs";

/**
 * Packages for one architecture: this machine's installed ones if they fit, else fetched by apt from this machine's
 * sources. Nothing is installed.
 */
export class DebianPackages {
  readonly #architecture: Architecture;
  readonly #cache: string;
  #installed: InstalledPackages | undefined;
  #apt: AptRoot | undefined;

  /** @param cache a directory for what is fetched */
  constructor(architecture: Architecture, cache: string) {
    this.#architecture = architecture;
    this.#cache = cache;
  }

  /** @throws where they cannot be had */
  of(selection: Selection): readonly DebianPackage[] {
    return packagesOf(this.#sourceOf(selection), selection);
  }

  #sourceOf({ packages }: Selection): PackageSource {
    if (machineArchitecture() === this.#architecture) {
      this.#installed ??= new InstalledPackages();
      const installed = this.#installed;
      if (packages.every((name) => installed.field(name, "Version") !== undefined)) return installed;
    }
    this.#apt ??= new AptRoot(this.#architecture, join(this.#cache, this.#architecture));
    return this.#apt;
  }
}

function packagesOf(source: PackageSource, selection: Selection): readonly DebianPackage[] {
  const names = [...closure(source, selection.packages), licenceTexts];
  const places = source.unpack(names);
  const packages = names.map((name): DebianPackage => {
    const place = places.get(name);
    const version = source.field(name, "Version");
    if (place === undefined || version === undefined)
      throw new Error(`Cannot take files of "${name}" into an image: there is no such package, wanted Debian 12's`);
    const ofIt = selection.packages.includes(name) ? selection.files : [];
    const patterns = name === licenceTexts ? takenOfLicenceTexts : [...takenOfAll, ...ofIt];
    return { name, version, source: source.field(name, "Source") ?? name, files: filesIn(place, patterns) };
  });
  const taken = packages.flatMap(({ files }) => files.map(({ path }) => path));
  source.verify(names, taken);
  const missing = selection.files.find((pattern) => !taken.some((path) => pattern.test(path)));
  if (missing !== undefined)
    throw new Error(`Cannot make an image of ${selection.packages.join(", ")}: no file of them is ${missing}`);
  return packages;
}

/** The packages, and the libraries that they and those depend on, in the order of their names. */
function closure(source: PackageSource, wanted: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const add = (name: string): void => {
    if (found.has(name)) return;
    found.add(name);
    const depends = [source.field(name, "Pre-Depends"), source.field(name, "Depends")].filter(Boolean).join(",");
    for (const alternatives of depends.split(",")) {
      const names = alternatives.split("|").map((one) => /^\s*([a-z0-9][a-z0-9+.-]*)/.exec(one)?.[1] ?? "");
      const there = names.find((one) => one !== "" && source.field(one, "Section") !== undefined);
      if (there !== undefined && source.field(there, "Section") === sectionOfLibraries) add(there);
    }
  };
  for (const name of wanted) add(name);
  return [...found].sort();
}

function filesIn(
  { root, paths }: { readonly root: string; readonly paths: readonly string[] },
  patterns: readonly RegExp[],
): readonly TarEntry[] {
  return paths.flatMap((path): readonly TarEntry[] => {
    const inImage = inUsr(path.slice(1));
    if (!patterns.some((pattern) => pattern.test(inImage))) return [];
    const place = join(root, path);
    const stat = lstatSync(place);
    if (stat.isSymbolicLink()) return [{ t: "link", path: inImage, link: readlinkSync(place) }];
    if (stat.isDirectory()) return [];
    return [{ t: "file", path: inImage, mode: stat.mode & 0o777, bytes: readFileSync(place) }];
  });
}
