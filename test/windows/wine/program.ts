import { type ChildProcess, spawn } from "node:child_process";

export interface ProgramOptions {
  readonly args?: readonly string[];
  /** Beside what Wine itself needs; nothing of this process's own environment is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** What stands on standard input, which ends behind it; a number is an open file of this process. */
  readonly stdin?: string | Uint8Array | number;
  /** Standard input does not end by itself: see `endInput`. */
  readonly inputStaysOpen?: boolean;
  /** Milliseconds until the program is killed, which makes the run an error; 60,000 where it is not given. */
  readonly timeoutMs?: number;
  readonly cwd?: string;
  /** A script of the shell in which `"$@"` is the program, to give it other inputs and outputs than pipes of this process. */
  readonly shell?: string;
}

/** How a program ended. */
export interface Ended {
  /** `null` where a signal ended it. */
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** From start to end. */
  readonly ms: number;
}

const longestMs = 60_000;
/** So often nothing may come from a program that has ended: one long wait could go by while this thread was held up. */
const silences = { count: 20, eachMs: 50 };

/** A Windows program that runs. Its Unix process is the Windows process: a SIGKILL ends it as TerminateProcess does. */
export class Program implements AsyncDisposable {
  stdout = "";
  stderr = "";
  /** Rejects where the time was up. */
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();

  constructor(command: readonly string[], env: Readonly<Record<string, string>>, options: ProgramOptions) {
    const { stdin = "", timeoutMs = longestMs, cwd = "/" } = options;
    const wrapped = options.shell === undefined ? command : ["sh", "-c", options.shell, "sh", ...command];
    const [file = "", ...args] = wrapped;
    const started = performance.now();
    // Plain pipes; a file where one is given.
    const input = typeof stdin === "number" ? stdin : "pipe";
    this.#child = spawn(file, args, { env: { ...env }, cwd, stdio: [input, "pipe", "pipe"] });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => this.#took({ stdout: text }));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => this.#took({ stderr: text }));
    // One who does not read all of its input ends before it is written.
    this.#child.stdin?.on("error", () => undefined);
    if (typeof stdin !== "number") this.#child.stdin?.write(stdin);
    if (options.inputStaysOpen !== true) this.endInput();
    const { promise, resolve, reject } = Promise.withResolvers<Ended>();
    this.ended = promise;
    // Whoever does not wait for the end is not to be told of it.
    promise.catch(() => undefined);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.kill("SIGKILL");
    }, timeoutMs);
    // A service of Windows that was started meanwhile may have inherited the outputs, and keeps them open.
    this.#child.on("exit", () => this.#closeOutputs(silences.count));
    this.#child.on("error", reject);
    this.#child.on("close", (status) => {
      clearTimeout(timer);
      if (late) reject(new Error(`Cannot run "${args.join(" ")}": not over after ${timeoutMs} ms\n${this.#said}`));
      resolve({ status, stdout: this.stdout, stderr: this.stderr, ms: performance.now() - started });
      this.#tell();
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  endInput(): void {
    this.#child.stdin?.end();
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** SIGINT reaches the program as Ctrl+C does, SIGKILL ends it at once; any other signal is a kill as well. */
  kill(signal: "SIGINT" | "SIGKILL"): void {
    if (!this.hasEnded) this.#child.kill(signal);
  }

  /** Waits until both outputs together hold what `wanted` looks for. @throws where the program ends without it */
  async saying(wanted: string | RegExp, withinMs = 40_000): Promise<void> {
    const until = performance.now() + withinMs;
    const has = (text: string): boolean => (typeof wanted === "string" ? text.includes(wanted) : wanted.test(text));
    while (!has(this.stdout) && !has(this.stderr)) {
      const left = until - performance.now();
      if (this.hasEnded) await this.ended.catch(() => undefined);
      if (this.hasEnded && (has(this.stdout) || has(this.stderr))) return;
      if (this.hasEnded || left <= 0) throw new Error(`Waited in vain for ${wanted} in\n${this.#said}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#waiting.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Asks it to end by Ctrl+C, and kills it when it does not within `graceMs`. @returns how it ended */
  async stop(graceMs = 20_000): Promise<Ended> {
    this.kill("SIGINT");
    const timer = setTimeout(() => this.kill("SIGKILL"), graceMs);
    try {
      return await this.ended;
    } finally {
      clearTimeout(timer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGKILL");
    await this.ended.catch(() => undefined);
  }

  #closeOutputs(silencesLeft: number): void {
    const before = this.stdout.length + this.stderr.length;
    const timer = setTimeout(() => {
      const isSilent = this.stdout.length + this.stderr.length === before;
      if (silencesLeft > 1) return this.#closeOutputs(isSilent ? silencesLeft - 1 : silences.count);
      this.#child.stdout?.destroy();
      this.#child.stderr?.destroy();
    }, silences.eachMs);
    timer.unref();
  }

  get #said(): string {
    return `${this.stdout}${this.stderr}`.slice(-4_000);
  }

  #took({ stdout = "", stderr = "" }): void {
    this.stdout += stdout;
    this.stderr += stderr;
    this.#tell();
  }

  #tell(): void {
    for (const tell of this.#waiting) tell();
    this.#waiting.clear();
  }
}
