import { version as packageVersion } from "../package.json";

/** Put in by the compiler of a release (build/bundle.ts): its tag, or how far it is from one. */
declare const releaseVersion: string | undefined;

/** Pipette's own version; the CNI specification's are in `cni/versions.ts`. */
export const version: string = typeof releaseVersion === "undefined" ? packageVersion : releaseVersion;
