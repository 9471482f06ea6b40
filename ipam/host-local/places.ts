import { CniCode, CniError } from "../../shared/errors.ts";
import { paths } from "../../shared/os/paths.ts";
import { reasonOf } from "../../shared/reason.ts";

/**
 * The directory in which host-local keeps this network's leases, where it ever did: beside ours, or, where no
 * `dataDir` is configured, at its own default place.
 * @throws {CniError} code 5 where the system does not let us look
 */
export async function hostLocalDirectory(dataDir: string, network: string): Promise<string | undefined> {
  const places = dataDir === paths.dataDir ? [dataDir, paths.hostLocalDataDir] : [dataDir];
  for (const place of places) {
    const directory = `${place}${paths.directorySeparator}${network}`;
    if ((await directoryAt(directory)) !== undefined) return directory;
  }
  return undefined;
}

/** The path, where it is a directory. @throws {CniError} as `hostLocalDirectory` */
export async function directoryAt(path: string): Promise<string | undefined> {
  try {
    return (await Bun.file(path).stat()).isDirectory() ? path : undefined;
  } catch (cause) {
    const code = (cause as { code?: unknown }).code;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    const is = reasonOf(cause);
    throw new CniError(
      CniCode.io,
      `Cannot look for leases of host-local: "${path}" cannot be reached (${is}), wanted a directory that this process may read, or none`,
      { cause },
    );
  }
}
