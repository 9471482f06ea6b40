/** The specification versions that Pipette speaks, oldest first. */
export const supportedVersions = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const;

export type CniVersion = (typeof supportedVersions)[number];

export const latestVersion: CniVersion = "1.1.0";

/** Exact match only, as the reference library does it: "1.0" is not a version. An empty text means 0.1.0. */
export function parseVersion(text: string): CniVersion | undefined {
  if (text === "") return "0.1.0";
  const at = (supportedVersions as readonly string[]).indexOf(text);
  return supportedVersions[at];
}

/** Versions are listed in order, so their indexes can be compared. */
export function atLeast(version: CniVersion, least: CniVersion): boolean {
  return supportedVersions.indexOf(version) >= supportedVersions.indexOf(least);
}
