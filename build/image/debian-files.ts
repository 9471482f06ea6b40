import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TarEntry } from "../archive/tar.ts";

/** What the image takes from Debian: `nft`, the C library for both programs, and all that `nft` depends on. */

export type Architecture = "amd64" | "arm64";

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly source: string;
  /** What the image takes of it, by path from the image's root. */
  readonly files: readonly TarEntry[];
}

/** What the packages refer to for the texts of their licences, and nothing else of this one. */
const licenceTexts = "base-files";
const wanted = "nftables";

const taken = [
  /^usr\/sbin\/nft$/,
  // The loader and the libraries, not their modules for character sets and auditing.
  /^usr\/lib(64)?\/([\w-]+\/)?[^/]+\.so(\.[\d.]+)?$/,
  /^usr\/share\/doc\/[^/]+\/copyright$/,
];
const takenOfLicenceTexts = [/^usr\/share\/common-licenses\/[\w.-]+$/];

/**
 * Of this machine's own packages where it is of that architecture, else fetched by apt from where this machine has its own.
 * @param cache a directory for what is fetched
 */
export function debianPackages(architecture: Architecture, cache: string): readonly DebianPackage[] {
  return machineArchitecture() === architecture ? installed() : fetched(architecture, cache);
}

const machineArchitecture = (): string => output("dpkg", "--print-architecture").trim();

function installed(): readonly DebianPackage[] {
  const names = [...closure(wanted), licenceTexts];
  const changed = output("dpkg", "--verify", ...names);
  const packages = names.map((name) => {
    const paths = output("dpkg-query", "-L", name).trim().split("\n");
    return packageOf(name, "/", paths, (field) => output("dpkg-query", "-W", "-f", `\${${field}}`, name));
  });
  for (const { path } of packages.flatMap(({ files }) => files))
    if (changed.split("\n").some((line) => inUsr(line.replace(/^.*? \//, "")) === path))
      throw new Error(`Cannot take "/${path}" into the image: it is not as its package has it, wanted it unchanged`);
  return packages;
}

/** A package and all that it depends on, by what is installed here. */
function closure(name: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const depends = output("dpkg-query", "-W", "-f", `\${Pre-Depends},\${Depends}`, name);
  for (const [, dependency = ""] of depends.matchAll(/(?:^|,)\s*([a-z0-9][a-z0-9+.-]*)/g)) closure(dependency, found);
  return found;
}

/** apt resolves and fetches as for a machine of that architecture on which nothing is installed. */
function fetched(architecture: Architecture, cache: string): readonly DebianPackage[] {
  const at = (name: string): string => join(cache, architecture, name);
  // Nothing of an earlier time: what is fetched is of today's versions.
  rmSync(at("."), { recursive: true, force: true });
  for (const name of ["state/lists/partial", "archives/partial", "unpacked"]) mkdirSync(at(name), { recursive: true });
  writeFileSync(at("status"), "");
  const settings = {
    "APT::Architecture": architecture,
    "APT::Architectures": architecture,
    "Dir::State": at("state"),
    "Dir::State::status": at("status"),
    "Dir::Cache": at("."),
    "Dir::Cache::archives": at("archives"),
    "APT::Sandbox::User": "root",
  };
  writeFileSync(
    at("apt.conf"),
    Object.entries(settings)
      .map(([key, value]) => `${key} "${value}";\n`)
      .join(""),
  );
  const env = { ...process.env, APT_CONFIG: at("apt.conf"), DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...args: readonly string[]): void => void execFileSync("apt-get", ["-qq", ...args], { env });
  apt("update");
  apt("install", "-y", "--no-install-recommends", "--download-only", wanted, licenceTexts);
  const archives = readdirSync(at("archives")).filter((name) => name.endsWith(".deb"));
  return archives.sort().flatMap((name) => {
    const archive = at(`archives/${name}`);
    const [packageName = ""] = name.split("_");
    const directory = at(`unpacked/${packageName}`);
    execFileSync("dpkg-deb", ["-x", archive, directory]);
    const paths = readdirSync(directory, { recursive: true, encoding: "utf8" }).map((path) => `/${path}`);
    const fields: Readonly<Record<string, string>> = { Version: "Version", "source:Package": "Source" };
    const field = (of: string): string =>
      output("dpkg-deb", "-f", archive, fields[of] ?? of)
        .replace(/ .*/, "")
        .trim();
    const found = packageOf(packageName, directory, paths, (of) => field(of) || packageName);
    // Besides what nft needs, apt fetches what Debian's base depends on.
    return found.files.some(({ path }) => !path.startsWith("usr/share/doc/")) ? [found] : [];
  });
}

function packageOf(
  name: string,
  root: string,
  paths: readonly string[],
  field: (name: string) => string,
): DebianPackage {
  const patterns = name === licenceTexts ? takenOfLicenceTexts : taken;
  const files = paths.flatMap((path): readonly TarEntry[] => {
    const inImage = inUsr(path.slice(1));
    if (!patterns.some((pattern) => pattern.test(inImage))) return [];
    const place = join(root, path);
    const stat = lstatSync(place);
    if (stat.isSymbolicLink()) return [{ t: "link", path: inImage, link: readlinkSync(place) }];
    return [{ t: "file", path: inImage, mode: stat.mode & 0o777, bytes: readFileSync(place) }];
  });
  return { name, version: field("Version"), source: field("source:Package"), files };
}

/** Packages of Debian 12 still name files of /usr by the links in the root: /lib is usr/lib. */
const inUsr = (path: string): string => path.replace(/^(lib|lib64|bin|sbin)\//, "usr/$1/");

const output = (file: string, ...args: readonly string[]): string =>
  execFileSync(file, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });
