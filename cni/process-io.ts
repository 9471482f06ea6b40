import type { PluginIo } from "../shared/cni/dispatch.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { isWindows } from "../shared/platform.ts";
import { readStdin } from "./stdin.linux.ts";

/**
 * The process around a plugin call. Of the ways to write, `Bun.write` is the cheapest that notices
 * a reader that is gone or a full disk, and that writes all of a long text (`console.log` ignores
 * failures, `process.stdout.write` alone costs more than the rest of the call).
 */
export function processIo(): PluginIo {
  let written = false;
  return {
    env: process.env,
    readStdin: async () => {
      try {
        return await (isWindows ? (await import("./stdin.windows.ts")).readStdin : readStdin)(limits.stdinBytes);
      } catch (cause) {
        throw ioFailure("read standard input", cause, "a pipe or file with the network configuration");
      }
    },
    writeResult: async (text) => {
      // Two objects would be none: a fault that comes after the result is told by the status alone.
      if (written) return;
      written = true;
      try {
        await Bun.write(Bun.stdout, `${text}\n`);
      } catch (cause) {
        throw ioFailure("write the result to standard output", cause, "a reader that takes all of it");
      }
    },
    log: (line) => console.error(line),
  };
}

function ioFailure(action: string, cause: unknown, wanted: string): CniError {
  const is = cause instanceof Error ? cause.message : String(cause);
  return new CniError(CniCode.io, `Cannot ${action}: ${is}, wanted ${wanted}`, { cause });
}
