import { access, constants, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import type { Places } from "./executables.ts";
import { codeOf, isMissing } from "./files.ts";

/** What the command line says about the places of executables. */
export interface PlaceWish {
  readonly "bin-dir"?: string | undefined;
  readonly "libexec-dir"?: string | undefined;
  readonly "no-libexec"?: boolean;
  readonly "executables-only"?: boolean;
}

const usualLibexec = dirname(paths.wholeProgram);

/** The places of an existing installation, for its removal. @throws {CniError} code 7 where both are one directory */
export function placesOf(wish: PlaceWish): Places {
  const bin = resolve(wish["bin-dir"] ?? paths.cniBinDir);
  const given = wish["libexec-dir"];
  if (given !== undefined && resolve(given) === bin)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot use "${bin}" for the plugins and for the whole program: both are called "pipette", wanted two directories`,
    );
  // With another directory for plugins the whole program is installed there, unless another option is given.
  const usual = bin === resolve(paths.cniBinDir) ? usualLibexec : undefined;
  return { bin, libexec: given === undefined ? usual : resolve(given) };
}

/**
 * The places of a new installation. The small program starts the whole one by a compiled-in path, so it is only used if
 * a file written here is found under that path on the node.
 * @returns also a sentence that says why the whole program is installed under both names, if that was not asked for
 */
export async function choosePlaces(
  wish: PlaceWish,
): Promise<{ readonly places: Places; readonly warnings: readonly string[] }> {
  const places = placesOf(wish);
  const { bin, libexec } = places;
  if (libexec === undefined || wish["no-libexec"]) return { places: { bin }, warnings: [] };
  if (wish["libexec-dir"] !== undefined)
    return { places, warnings: wish["executables-only"] || libexec === usualLibexec ? [] : [startsAnother(libexec)] };
  const why = (await isMountedAlone(bin))
    ? `"${bin}" is mounted by itself, so "${libexec}" may be another machine's`
    : (await isReadOnly(libexec))
      ? `"${libexec}" is on a read-only file system`
      : undefined;
  if (why === undefined) return { places, warnings: [] };
  const both = `${why}: the whole program goes under both names, and each call takes longer`;
  return {
    places: { bin },
    warnings: [`${both}; --libexec-dir names its directory, --no-libexec leaves this word out`],
  };
}

/** A container with the node's directory elsewhere installs executables only. */
const startsAnother = (libexec: string): string =>
  `the small program starts "${paths.wholeProgram}", and the whole one goes into "${libexec}": it has to be found there`;

/** Whether this directory is mounted separately, as the node's in a container. */
async function isMountedAlone(directory: string): Promise<boolean> {
  if (isWindows) return false;
  const [own, above] = await Promise.all([directory, dirname(directory)].map(deviceOf));
  return own !== undefined && own !== above;
}

const deviceOf = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ dev }) => dev,
    () => undefined,
  );

/** Whether it cannot be written, or created, there. */
async function isReadOnly(directory: string): Promise<boolean> {
  try {
    await access(directory, constants.W_OK);
    return false;
  } catch (caught) {
    const above = join(directory, "..");
    if (isMissing(caught) && above !== directory) return isReadOnly(above);
    return codeOf(caught) === "EROFS";
  }
}
