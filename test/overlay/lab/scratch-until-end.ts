import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Waits for the end of its stdin, that is of whoever started it, and clears up after everybody has ended. */
const removal = `trap "" INT TERM HUP; read -r _; sleep 1; rm -rf "$0"`;

/** A directory below the temporary one that is gone with its scope, and also when this process is killed. */
export function scratchUntilEnd(prefix: string): { readonly path: string } & AsyncDisposable {
  const path = mkdtempSync(join(tmpdir(), prefix));
  const remover = Bun.spawn(["sh", "-c", removal, path], { stdin: "pipe", stdout: "ignore", stderr: "ignore" });
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      rmSync(path, { recursive: true, force: true });
      remover.kill("SIGKILL");
      await remover.exited;
    },
  };
}
