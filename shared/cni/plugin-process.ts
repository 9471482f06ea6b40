import { CniCode, CniError } from "../errors.ts";
import { limits } from "../limits.ts";
import { isWindows } from "../os/platform.ts";
import { reasonOf } from "../reason.ts";
import { encodeError, type PluginIo } from "./dispatch.ts";
import { readStdin } from "./stdin.linux.ts";
import { latestVersion } from "./versions.ts";

/**
 * Runs a plugin as what this process is there for. Whatever goes wrong, also where nobody waits for it, is one CNI error
 * on stdout and a failure.
 * @returns the exit status
 */
export async function runPluginProcess(plugin: (io: PluginIo) => Promise<number>): Promise<number> {
  const io = processIo();
  const fail = async (caught: unknown): Promise<number> => {
    await io.writeResult(encodeError(CniError.from(caught), latestVersion)).catch(() => undefined);
    return 1;
  };
  const lastResort = (caught: unknown): void => void fail(caught).then((status) => process.exit(status));
  process.on("uncaughtException", lastResort);
  process.on("unhandledRejection", lastResort);
  try {
    return await plugin(io);
  } catch (caught) {
    return fail(caught);
  }
}

/**
 * The process around a plugin call. Of the ways to write, `Bun.write` is the cheapest that notices
 * a reader that is gone or a full disk, and that writes all of a long text (`console.log` ignores
 * failures, `process.stdout.write` alone costs more than the rest of the call).
 */
function processIo(): PluginIo {
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
  const is = reasonOf(cause);
  return new CniError(CniCode.io, `Cannot ${action}: ${is}, wanted ${wanted}`, { cause });
}
