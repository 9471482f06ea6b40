import { CniCode, CniError } from "../../shared/errors.ts";
import { paths } from "../../shared/os/paths.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { Store } from "../store/store.ts";

/**
 * What the store remembers of a network's past with host-local:
 * - `none`: there was no directory when the network was first used;
 * - `taken`: its leases were imported, and the directory is ignored;
 * - `exported`: its leases were written to the directory, which host-local may have changed since.
 */
export type TakeOverRecord =
  | { readonly t: "none" }
  | {
      readonly t: "taken" | "exported";
      readonly directory: string;
      /**
       * The store's generation counter at the import: leases with a higher one are younger than the imported cursors.
       */
      readonly generation: number;
    };

const markOf = (network: string): string => `host-local ${network}`;

/** Whether there is nothing to import. It costs one look-up, because every ADD asks. */
export function isSettled(store: Pick<Store, "mark">, network: string): boolean {
  const value = store.mark(markOf(network));
  return value !== undefined && !value.startsWith("exported ");
}

/** `undefined` where the network was never used. */
export function readRecord(store: Store, network: string): TakeOverRecord | undefined {
  const value = store.mark(markOf(network));
  if (value === undefined) return undefined;
  const match = /^(taken|exported) (\d+) (.+)$/s.exec(value);
  if (match === null) return { t: "none" };
  return { t: match[1] as "taken" | "exported", generation: Number(match[2]), directory: match[3] ?? "" };
}

export function writeRecord(store: Store, network: string, record: TakeOverRecord): void {
  store.setMark(markOf(network), record.t === "none" ? "none" : `${record.t} ${record.generation} ${record.directory}`);
}

/**
 * The directory in which host-local keeps this network's leases, if there is one: in our data directory, or, if no
 * `dataDir` is configured, at host-local's default place.
 * @throws {CniError} code 5 where the system does not let us read it
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
