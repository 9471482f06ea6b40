import { linuxPaths } from "./paths.linux.ts";
import { windowsPaths } from "./paths.windows.ts";
import { isWindows } from "./platform.ts";

/** Where things lie when no configuration says otherwise. */
export const paths = isWindows ? windowsPaths : linuxPaths;
