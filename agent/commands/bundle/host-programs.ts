import { isWindows } from "../../../shared/os/platform.ts";
import { linuxPrograms } from "./host-programs.linux.ts";
import { windowsPrograms } from "./host-programs.windows.ts";

/** A program of the system that shows something, and the file that its answer becomes. */
export interface HostProgram {
  readonly file: string;
  readonly line: readonly string[];
}

export const hostPrograms = isWindows ? windowsPrograms : linuxPrograms;
