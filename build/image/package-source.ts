export type Architecture = "amd64" | "arm64";

/** Fields of a package's control file. */
export type Field = "Version" | "Section" | "Pre-Depends" | "Depends" | "Source";

/** Where Debian's packages come from. */
export interface PackageSource {
  /** "" where the package has no such field, `undefined` where there is no such package. */
  field(name: string, field: Field): string | undefined;
  /** Unpacks them. @returns by name where each lies, and the paths of its files from there */
  unpack(names: readonly string[]): ReadonlyMap<string, { readonly root: string; readonly paths: readonly string[] }>;
  /** @throws where one of these files, by its path from the root, is not as its package has it */
  verify(names: readonly string[], taken: readonly string[]): void;
}

/** Packages of Debian 12 still name files of /usr by the links in the root: /lib is usr/lib. */
export const inUsr = (path: string): string => path.replace(/^(lib|lib64|bin|sbin)\//, "usr/$1/");
