import { linuxPaths } from "./paths.linux.ts";
import { windowsPaths } from "./paths.windows.ts";
import { isWindows } from "./platform.ts";

/** Default paths. */
export const paths = isWindows ? windowsPaths : linuxPaths;
