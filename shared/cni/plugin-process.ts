import { CniCode, CniError } from "../errors.ts";
import { isWindows } from "../os/platform.ts";
import { reasonOf } from "../reason.ts";
import { encodeError, maxStdinBytes, type PluginIo } from "./dispatch.ts";
import { readStdin } from "./stdin.linux.ts";
import { latestVersion } from "./versions.ts";

/**
 * Runs a plugin as the only task of this process. Whatever goes wrong, unhandled rejections included, becomes one CNI
 * error on stdout and a failure status.
 * @returns the exit status
 */
export async function runPluginProcess(plugin: (io: PluginIo) => Promise<number>): Promise<number> {
  const io = processIo();
  const fail = async (caught: unknown): Promise<number> => {
    const error = CniError.from(caught);
    await io.writeResult(encodeError(error, latestVersion)).catch(() => io.log(error.message));
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
  let writing: Promise<unknown> | undefined;
  return {
    env: process.env,
    readStdin: async () => {
      try {
        return await (isWindows ? (await import("./stdin.windows.ts")).readStdin : readStdin)(maxStdinBytes);
      } catch (cause) {
        throw ioFailure("read standard input", cause, "a pipe or file with the network configuration");
      }
    },
    writeResult: async (text) => {
      if (writing !== undefined) {
        // Two objects on stdout could not be parsed. The process ends after this, so the first must be written before.
        await writing.catch(() => undefined);
        throw new CniError(CniCode.io, "Cannot write a second result to standard output: it takes one object");
      }
      try {
        writing = Bun.write(Bun.stdout, `${text}\n`);
        await writing;
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
