import { readdirSync, statSync } from "node:fs";
import { linuxPaths } from "../../shared/os/paths.linux.ts";

/** Places of an installed Pipette and of runtimes, which no test may touch. */
const places = [linuxPaths.dataDir, "/var/run/pipette", "/etc/pipette", linuxPaths.cniConfDir];

/** The files at the places that belong to the machine itself, with size and time of change. */
export function machineState(): ReadonlyMap<string, string> {
  return new Map(places.flatMap((place) => entriesOf(place)));
}

/** Files that were added, removed or changed between two states. */
export function differences(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].sort().flatMap((path) => {
    const [was, is] = [before.get(path), after.get(path)];
    if (was === is) return [];
    return [`${path} ${was === undefined ? "has come" : is === undefined ? "is gone" : "has changed"}`];
  });
}

function entriesOf(place: string): readonly (readonly [string, string])[] {
  try {
    const stat = statSync(place);
    if (!stat.isDirectory()) return [[place, `${stat.size} ${stat.mtimeMs}`]];
    // A directory's own time is ignored, since its entries are compared.
    return [[place, "directory"], ...readdirSync(place).flatMap((name) => entriesOf(`${place}/${name}`))];
  } catch {
    return []; // It does not exist, or this user may not read it.
  }
}
