import { closeSync, openSync, readFileSync } from "node:fs";
import { innerProcess } from "../../support/inner-process.ts";

export interface DaemonPlace {
  /** File for what it says. */
  readonly log: string;
  /** What stands first on the command line, to start it in another place. */
  readonly prefix?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A program that runs on and on, and may be ended and started again. It ends with this process. */
export class Daemon implements AsyncDisposable {
  readonly #command: readonly string[];
  readonly #place: DaemonPlace;
  #process: Bun.Subprocess | undefined;

  constructor(command: readonly string[], place: DaemonPlace) {
    this.#command = command;
    this.#place = place;
  }

  start(): void {
    const { log, prefix = [], env = {} } = this.#place;
    const output = openSync(log, "a");
    const command = ["setpriv", "--pdeathsig", "KILL", ...prefix, ...this.#command];
    this.#process = Bun.spawn(command, {
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env },
      stdin: "ignore",
      stdout: output,
      stderr: output,
    });
    closeSync(output);
  }

  get pid(): number {
    if (this.#process === undefined) throw new Error(`"${this.#command[0]}" does not run`);
    return innerProcess(this.#process.pid);
  }

  /** @throws with its last words where it has ended by itself */
  mustRun(): void {
    if (this.#process === undefined || this.#process.exitCode === null) return;
    throw new Error(`"${this.#command[0]}" has ended: ${this.log().slice(-2_000)}`);
  }

  /** Ends it, and waits for the end. */
  async end(signal: "SIGKILL" | "SIGTERM" = "SIGTERM"): Promise<void> {
    if (this.#process === undefined) return;
    if (this.#process.exitCode === null) process.kill(innerProcess(this.#process.pid), signal);
    await this.#process.exited;
    this.#process = undefined;
  }

  log(): string {
    return readFileSync(this.#place.log, "utf8");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}
