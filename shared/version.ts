import { version as packageVersion } from "../package.json";

/** Defined by a release build (build/bundle.ts): its tag, or the distance from one. */
declare const releaseVersion: string | undefined;

/** Pipette's own version; the CNI specification's are in `cni/versions.ts`. */
export const version: string = typeof releaseVersion === "undefined" ? packageVersion : releaseVersion;
