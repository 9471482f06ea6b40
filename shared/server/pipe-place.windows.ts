import { CniCode, CniError } from "../errors.ts";
import { administratorsOnly, isAdministratorsOnly, openDescriptors } from "../os/descriptor.windows.ts";
import { isPipeName, openPipes, type Pipes, pipeAccess } from "../os/pipe.windows.ts";
import { winError } from "../os/win32.windows.ts";
import { reasonOf } from "../reason.ts";
import type { SocketPlace } from "./system.ts";

/**
 * Checks in a row that may find every instance busy. Instances become free within milliseconds and checks are seconds
 * apart, so after this many the server is stuck.
 */
const longestBusyLooks = 3;

/**
 * A pipe has no file: it exists while a process serves it. So there is nothing to prepare, and a dead process leaves
 * nothing behind.
 */
export class PipePlace implements SocketPlace {
  readonly #name: string;
  readonly #pipes: Pipes;
  /** Checks in a row that found no free instance, since the last call came. */
  #busyLooks = 0;
  #served = 0;

  constructor(name: string, pipes: Pipes = openPipes()) {
    this.#name = name;
    this.#pipes = pipes;
  }

  prepare(): void {
    if (isPipeName(this.#name)) return;
    throw this.#refusal("it is no name of a pipe", "one such as \\\\.\\pipe\\pipette-cni");
  }

  async clear(): Promise<void> {
    const attempt = this.#pipes.open(this.#name, pipeAccess.look);
    if (attempt.t === "failed" && attempt.error === winError.fileNotFound) return;
    const holder = attempt.t === "open" ? this.#pipes.serverOf(attempt.handle) : undefined;
    if (attempt.t === "open") this.#pipes.close(attempt.handle);
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

  fate(served: number): string | undefined {
    // Many clients may take each instance at once; a server that still gets calls is not lost.
    if (served !== this.#served) this.#busyLooks = 0;
    this.#served = served;
    const attempt = this.#pipes.open(this.#name, pipeAccess.look);
    if (attempt.t === "failed") {
      // All instances may be busy for a moment; if that lasts without calls, the server is lost.
      if (attempt.error === winError.pipeBusy) return ++this.#busyLooks < longestBusyLooks ? undefined : "takes nobody";
      return attempt.error === winError.fileNotFound ? "is gone" : `cannot be opened (error ${attempt.error})`;
    }
    this.#busyLooks = 0;
    try {
      if (this.#pipes.serverOf(attempt.handle) !== process.pid) return "is another program's";
      // An administrator's program may have opened it to others.
      const access = openDescriptors().accessOf(attempt.handle);
      return isAdministratorsOnly(access) ? undefined : `has the descriptor "${access}"`;
    } catch (caught) {
      return `has a descriptor that cannot be read (${reasonOf(caught)})`;
    } finally {
      this.#pipes.close(attempt.handle);
    }
  }

  /** Bun creates a pipe with default rights, which let everybody read it. */
  #protect(handle: number): void {
    let access: string;
    try {
      openDescriptors().setAccess(handle, administratorsOnly);
      access = openDescriptors().accessOf(handle);
    } catch (cause) {
      const is = reasonOf(cause);
      throw this.#refusal(`its descriptor cannot be set (${is})`, `"${administratorsOnly}"`);
    }
    if (!isAdministratorsOnly(access)) throw this.#refusal(`its descriptor is "${access}"`, `"${administratorsOnly}"`);
  }

  #refusal(is: string, wanted: string): CniError {
    return new CniError(CniCode.io, `Cannot listen on "${this.#name}": ${is}, wanted ${wanted}`);
  }
}
