import { retry } from "../../shared/async/backoff.ts";
import { withTimeout } from "../../shared/async/with-timeout.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";

export interface ProgramOptions {
  /** After this the program is killed. */
  readonly deadlineMs: number;
  /** Input for its stdin; empty by default. */
  readonly input?: string;
  /** Variables in addition to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Bound of stdout and of stderr each; a program that writes more is killed. */
  readonly maxBytes?: number;
}

/** How a program of the system ended. */
export interface ProgramEnded {
  readonly stdout: string;
  readonly stderr: string;
  /** Why it failed, such as `its exit status was 3`; empty if it ended by itself with status 0. */
  readonly failure: string;
  /** Absent where it was killed, or could not be started. */
  readonly status?: number;
  /** There is no such program. */
  readonly isAbsent: boolean;
}

/** A command of the system, `nft` or PowerShell's: starting that and loading the Hyper-V module takes seconds on a busy node. */
export const commandMs = 60_000;
/** The longest output of such a command: the routes of a thousand nodes are a tenth of this. */
export const maxAnswerBytes = 4 * 1024 * 1024;
/**
 * Attempts to start a process, which fails while a node is short of a resource; nothing has run then, so it may be
 * repeated.
 */
const startTries = 4;
const startAgainMs = 250;
/** How long to wait for a killed process: one that hangs in a driver stays until the driver answers. */
const killGraceMs = 2000;

/** Errors of starting a process that may be temporary: no memory, a full table, busy. */
const passing = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ETXTBSY"]);

/**
 * Runs a program of the system to its end, within a bound. With Bun's own functions, which tell why a process could not
 * be started; `execa` fails in that case. Never throws.
 */
export async function runProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramEnded> {
  const none = { stdout: "", stderr: "", isAbsent: false };
  let left = startTries - 1;
  let child: Child;
  try {
    child = await retry(async () => spawn(file, args, options), {
      firstMs: startAgainMs,
      longestMs: startAgainMs,
      failed: (caught) => {
        if (left-- === 0 || !passing.has(codeOf(caught))) throw caught;
      },
    });
  } catch (caught) {
    const code = codeOf(caught);
    if (code === "ENOENT") return { ...none, failure: `"${file}" is not installed`, isAbsent: true };
    return { ...none, failure: `the system could not start its process (${code})` };
  }
  return ended(child, options);
}

const codeOf = (caught: unknown): string =>
  caught instanceof Error && "code" in caught ? String(caught.code) : reasonOf(caught);

type Child = Bun.Subprocess<"ignore" | "pipe", "pipe", "pipe">;

function spawn(file: string, args: readonly string[], { input, env }: ProgramOptions): Child {
  const child: Child = Bun.spawn([file, ...args], {
    stdin: input === undefined ? "ignore" : "pipe",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...env },
    windowsHide: true,
    // This process's own working directory may be gone.
    ...(isWindows ? {} : { cwd: "/" }),
  });
  // Written and closed explicitly: Bun itself closes the pipe only at a garbage collection.
  if (input !== undefined) void feed(child, input);
  return child;
}

async function feed({ stdin }: Child, input: string): Promise<void> {
  try {
    await stdin?.write(input);
    await stdin?.end();
  } catch {
    // A program that does not read all input reports why by its status.
  }
}

async function ended(child: Child, { deadlineMs, maxBytes = maxAnswerBytes }: ProgramOptions): Promise<ProgramEnded> {
  let failure = "";
  const kill = (why: string): void => {
    if (failure === "") failure = why;
    child.kill("SIGKILL");
  };
  const tooMuch = (): void => kill(`it said more than ${maxBytes} bytes and was killed`);
  const [stdout, stderr] = [new Gathered(maxBytes, tooMuch), new Gathered(maxBytes, tooMuch)];
  const deadline = setTimeout(() => kill(`it had not ended after ${deadlineMs} ms and was killed`), deadlineMs);
  const whole = Promise.all([child.exited, stdout.read(child.stdout), stderr.read(child.stderr)]);
  const outcome = await withTimeout(whole, deadlineMs + killGraceMs, () => false as const);
  clearTimeout(deadline);
  const said = { stdout: stdout.text(), stderr: stderr.text(), isAbsent: false };
  if (outcome === false) {
    child.unref();
    if (child.exitCode === null && child.signalCode === null)
      return { ...said, failure: `it had not ended after ${deadlineMs} ms, and killing does not end it` };
  }
  if (failure !== "") return { ...said, failure };
  if (child.exitCode === null) return { ...said, failure: `${child.signalCode} ended it` };
  const status = child.exitCode;
  return { ...said, status, failure: status === 0 ? "" : `its exit status was ${status}` };
}

/** The output of one stream, up to a bound. */
class Gathered {
  readonly #chunks: Uint8Array[] = [];
  readonly #maxBytes: number;
  readonly #tooMuch: () => void;
  #bytes = 0;

  constructor(maxBytes: number, tooMuch: () => void) {
    this.#maxBytes = maxBytes;
    this.#tooMuch = tooMuch;
  }

  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stream) {
      this.#bytes += chunk.length;
      if (this.#bytes <= this.#maxBytes) this.#chunks.push(chunk);
      else this.#tooMuch();
    }
  }

  text(): string {
    return new TextDecoder().decode(Buffer.concat(this.#chunks));
  }
}
