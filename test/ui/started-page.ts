import { eventually } from "../support/eventually.ts";
import { ownProgram } from "../support/own-program.ts";

/** `pipette ui` as a process, and the address that it prints. */
export class StartedPage implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  #stdout = "";
  stderr = "";

  private constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = Bun.spawn([...ownProgram, "ui", "--no-open", ...args], {
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    void this.#read(this.#child.stdout, (text) => {
      this.#stdout += text;
    });
    void this.#read(this.#child.stderr, (text) => {
      this.stderr += text;
    });
  }

  static async start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<StartedPage> {
    const page = new StartedPage(args, env);
    await eventually(() => {
      if (page.#child.exitCode !== null) throw new Error(`The page has ended: ${page.stderr}`);
      return page.#stdout.includes("\n");
    }, "the page's address");
    return page;
  }

  /** With its token. */
  get url(): string {
    return this.#stdout.trim();
  }

  at(view: string): string {
    return `${new URL(this.url).origin}/#/${view}`;
  }

  /** @returns its exit status */
  async end(): Promise<number> {
    this.#child.kill("SIGTERM");
    return await this.#child.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  async #read(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of stream) take(decoder.decode(bytes, { stream: true }));
  }
}
