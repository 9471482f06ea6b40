import { version as packageVersion } from "../package.json";

/** Pipette's own version; the CNI specification's are in `cni/versions.ts`. */
export const version: string = packageVersion;
