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

/** Of an installation as it may be there, for its removal. @throws {CniError} code 7 where both are one directory */
export function placesOf(wish: PlaceWish): Places {
  const bin = resolve(wish["bin-dir"] ?? paths.cniBinDir);
  const given = wish["libexec-dir"];
  if (given !== undefined && resolve(given) === bin)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot use "${bin}" for the plugins and for the whole program: both are called "pipette", wanted two directories`,
    );
  // Whoever names another directory for the plugins has the whole program there, unless said otherwise.
  const usual = bin === resolve(paths.cniBinDir) ? usualLibexec : undefined;
  return { bin, libexec: given === undefined ? usual : resolve(given) };
}

/**
 * Of an installation that is to be. The small program starts the whole one by a path that is compiled in, so it is put
 * in front only where what is written here is found there.
 * @returns with a word about why the whole program goes under both names where that was not asked for
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

/** As in a container that has this directory of the node, and others of its own. */
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

/** Where it would be written, or made. */
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
