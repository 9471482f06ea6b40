import { unlinkSync } from "node:fs";
import { type FileHandle, link, lstat, open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { CniCode, CniError } from "../../shared/errors.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";

/** What ends a command at a terminal. */
const signals = isWindows ? (["SIGINT", "SIGBREAK"] as const) : (["SIGINT", "SIGTERM", "SIGHUP"] as const);

/**
 * The file of a bundle, which is there whole or not at all, also where the command is interrupted: it is written under
 * another name beside it. Only this user may read it: what was left out is not all that could be used against a node.
 */
export class BundleFile implements AsyncDisposable {
  readonly #path: string;
  readonly #temporary: string;
  readonly #file: FileHandle;
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    try {
      unlinkSync(this.#temporary);
    } catch {
      // It is not there any more.
    }
    this.#forgetSignals();
    process.kill(process.pid, signal);
  };

  private constructor(path: string, temporary: string, file: FileHandle) {
    this.#path = path;
    this.#temporary = temporary;
    this.#file = file;
    for (const signal of signals) process.on(signal, this.#onSignal);
  }

  /** Before anything is collected: that there is no place for it is told at once. @throws {CniError} 5 */
  static async open(path: string): Promise<BundleFile> {
    if ((await lstat(path).catch(() => undefined)) !== undefined) throw cannot(path, "it is there already");
    const temporary = `${path}.${process.pid}.part`;
    try {
      return new BundleFile(path, temporary, await open(temporary, "wx", 0o600));
    } catch (caught) {
      const isAbsent = caught instanceof Error && "code" in caught && caught.code === "ENOENT";
      throw cannot(path, isAbsent ? `there is no directory "${dirname(path)}"` : reasonOf(caught), caught);
    }
  }

  /** @throws {CniError} 5, also where a file has come there meanwhile */
  async write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#file.writeFile(bytes);
      await this.#file.sync();
      await this.#place();
    } catch (caught) {
      const isThere = caught instanceof Error && "code" in caught && caught.code === "EEXIST";
      throw cannot(this.#path, isThere ? "it is there already" : reasonOf(caught), caught);
    }
  }

  /** By a second name, which is refused where there is a file, unlike a rename. Some file systems have no such names. */
  async #place(): Promise<void> {
    try {
      await link(this.#temporary, this.#path);
    } catch (caught) {
      const code = caught instanceof Error && "code" in caught ? caught.code : undefined;
      if (code === "EEXIST") throw caught;
      await rename(this.#temporary, this.#path);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#forgetSignals();
    await this.#file.close().catch(() => undefined);
    await unlink(this.#temporary).catch(() => undefined);
  }

  #forgetSignals(): void {
    for (const signal of signals) process.off(signal, this.#onSignal);
  }
}

const cannot = (path: string, is: string, cause?: unknown): CniError =>
  new CniError(CniCode.io, `Cannot write the bundle "${path}": ${is}`, { cause });
