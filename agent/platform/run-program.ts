import { retry } from "../../shared/async/backoff.ts";
import { withTimeout } from "../../shared/async/with-timeout.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";

export interface ProgramOptions {
  /** Then it is killed. */
  readonly deadlineMs: number;
  /** For its stdin, which is empty otherwise. */
  readonly input?: string;
  /** Beside this process's own variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of stdout and of stderr each; one that says more is killed. */
  readonly maxBytes?: number;
}

/** How a program of the system ended. */
export interface ProgramEnded {
  readonly stdout: string;
  readonly stderr: string;
  /** Where it did not end by itself with status 0: why, as `its exit status was 3`. Empty otherwise. */
  readonly failure: string;
  /** Absent where it was killed, or could not be started. */
  readonly status?: number;
  /** There is no such program. */
  readonly isAbsent: boolean;
}

/** A command of the system, `nft` or PowerShell's: starting that and loading the Hyper-V module takes seconds on a busy node. */
export const commandMs = 60_000;
/** What such a command may say: the routes of a thousand nodes are a tenth of this. */
export const maxAnswerBytes = 4 * 1024 * 1024;
/** A node that is out of something for a moment cannot start a process. Nothing has run then, so it may be tried again. */
const startTries = 4;
const startAgainMs = 250;
/** A killed process that sits in a driver's call stays until the driver answers; nobody waits for that. */
const killGraceMs = 2000;

/** Of the system's refusals to start a process those that may pass: no memory, no place in a table, busy. */
const passing = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ETXTBSY"]);

/**
 * Runs a program of the system to its end, within a bound. By Bun's own means, which say why a process could not be
 * started, and where that is nobody's fault; `execa` stumbles over such a child. Never throws.
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
    // Its own may be gone.
    ...(isWindows ? {} : { cwd: "/" }),
  });
  // Written and closed by hand: what Bun is given to write itself stays open until its memory is looked through.
  if (input !== undefined) void feed(child, input);
  return child;
}

async function feed({ stdin }: Child, input: string): Promise<void> {
  try {
    await stdin?.write(input);
    await stdin?.end();
  } catch {
    // One who does not read all of it has its reasons, which its status tells.
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

/** What comes out of one stream, up to a bound. */
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
