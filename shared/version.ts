import { version as packageVersion } from "../package.json";

/** Defined by a release build (build/bundle.ts): its tag, or the distance from one. */
declare const releaseVersion: string | undefined;

/** Pipette's own version; the CNI specification's are in `cni/versions.ts`. */
export const version: string = typeof releaseVersion === "undefined" ? packageVersion : releaseVersion;

/** Put in by the compiler (build/bundle.ts): 32 digits. */
declare const buildIdOfExecutable: string | undefined;

/**
 * Names what this program was made of, for the small program in front of it, which must be made of the same. Of sources
 * there is none: zeros.
 */
export const buildId = (): Uint8Array =>
  Uint8Array.fromHex(typeof buildIdOfExecutable === "undefined" ? "00".repeat(16) : buildIdOfExecutable);
