import { readdirSync, statSync } from "node:fs";
import { linuxPaths } from "../../shared/os/paths.linux.ts";

/** Where an installed Pipette and the runtimes keep what is theirs: no test has any business there. */
const places = [linuxPaths.dataDir, "/var/run/pipette", "/etc/pipette", linuxPaths.cniConfDir];

/** The files at the places that belong to the machine itself, with size and time of change. */
export function machineState(): ReadonlyMap<string, string> {
  return new Map(places.flatMap((place) => entriesOf(place)));
}

/** What has come, gone or changed between two looks. */
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
    // A directory's own time says nothing that its entries do not.
    return [[place, "directory"], ...readdirSync(place).flatMap((name) => entriesOf(`${place}/${name}`))];
  } catch {
    return []; // Is not there, or is not for this user to see.
  }
}
