import { CniCode, CniError } from "../errors.ts";
import { administratorsOnly, isAdministratorsOnly, openDescriptors } from "../windows/descriptor.windows.ts";
import { isPipeName, openPipes, type PipeHandle, pipeAccess } from "../windows/pipe.windows.ts";
import { winError } from "../windows/win32.windows.ts";
import type { SocketPlace } from "./system.ts";

/**
 * A pipe has no file: it is there while a process serves it, and gone with that process. So there is nothing to be
 * made before, and nothing that a dead process could leave.
 */
export class PipePlace implements SocketPlace {
  readonly #name: string;
  readonly #pipes = openPipes();

  constructor(name: string) {
    this.#name = name;
  }

  prepare(): void {
    if (isPipeName(this.#name)) return;
    throw this.#refusal("it is no name of a pipe", "one such as \\\\.\\pipe\\pipette-cni");
  }

  async clear(): Promise<void> {
    const attempt = this.#pipes.open(this.#name, pipeAccess.look);
    if (attempt.t === "failed" && attempt.error === winError.fileNotFound) return;
    const holder = this.#serverOf(attempt);
    const who = holder === undefined ? "another program" : `process ${holder}`;
    throw this.#refusal(`${who} has it already`, "a name of its own");
  }

  settle(): void {
    const attempt = this.#pipes.open(this.#name, pipeAccess.protect);
    if (attempt.t === "failed")
      throw this.#refusal(`it cannot be opened to be protected (error ${attempt.error})`, "a pipe of this process");
    try {
      const server = this.#pipes.serverOf(attempt.handle);
      if (server !== process.pid)
        throw this.#refusal(`process ${server ?? "unknown"} answers there`, `this process, ${process.pid}`);
      this.#protect(attempt.handle);
    } finally {
      this.#pipes.close(attempt.handle);
    }
  }

  fate(): string | undefined {
    const attempt = this.#pipes.open(this.#name, pipeAccess.look);
    if (attempt.t === "failed") {
      // Every instance is taken for a moment, by a crowd: then there are instances, and nobody else can make any.
      if (attempt.error === winError.pipeBusy) return undefined;
      return attempt.error === winError.fileNotFound ? "is gone" : `cannot be opened (error ${attempt.error})`;
    }
    return this.#serverOf(attempt) === process.pid ? undefined : "is another program's";
  }

  /** Bun makes a pipe with the rights that Windows gives to any, and everybody may read it then. */
  #protect(handle: number): void {
    let access: string;
    try {
      const descriptors = openDescriptors();
      descriptors.setAccess(handle, administratorsOnly);
      access = descriptors.accessOf(handle);
    } catch (cause) {
      const is = cause instanceof Error ? cause.message : String(cause);
      throw this.#refusal(`its descriptor cannot be set (${is})`, `"${administratorsOnly}"`);
    }
    if (!isAdministratorsOnly(access)) throw this.#refusal(`its descriptor is "${access}"`, `"${administratorsOnly}"`);
  }

  /** Closes the handle too. */
  #serverOf(attempt: PipeHandle): number | undefined {
    if (attempt.t === "failed") return undefined;
    const server = this.#pipes.serverOf(attempt.handle);
    this.#pipes.close(attempt.handle);
    return server;
  }

  #refusal(is: string, wanted: string): CniError {
    return new CniError(CniCode.io, `Cannot listen on "${this.#name}": ${is}, wanted ${wanted}`);
  }
}
