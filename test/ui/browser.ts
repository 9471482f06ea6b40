import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";

const program = "/usr/bin/chromium";
/** Of what it says, for an error. */
const maxKeptChars = 4_000;

/**
 * Debian's Chromium without a window. It is started here and reached by its debugging port, since playwright's own way
 * of starting it needs pipes that Bun does not always keep.
 */
export class TestBrowser implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"ignore", "ignore", "pipe">;
  readonly #directory: string;
  readonly #browser: Browser;
  readonly #contexts: BrowserContext[] = [];

  private constructor(child: Bun.Subprocess<"ignore", "ignore", "pipe">, directory: string, browser: Browser) {
    this.#child = child;
    this.#directory = directory;
    this.#browser = browser;
  }

  static async start(): Promise<TestBrowser> {
    const directory = mkdtempSync(join(tmpdir(), "pipette-browser-"));
    // As root it has no sandbox of its own; it shows nothing but our page.
    const options = [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--hide-scrollbars",
      "--disable-dev-shm-usage",
      "--no-first-run",
    ];
    const child = Bun.spawn(
      [
        program,
        ...options,
        "--force-color-profile=srgb",
        "--remote-debugging-port=0",
        `--user-data-dir=${directory}`,
        "about:blank",
      ],
      { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
    );
    try {
      const address = await debuggingAddress(child.stderr);
      return new TestBrowser(child, directory, await chromium.connectOverCDP(address));
    } catch (caught) {
      child.kill("SIGKILL");
      await child.exited;
      remove(directory);
      throw caught;
    }
  }

  /** A page of a browser that knows nothing yet; its errors end the test. */
  async page(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.#browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
    this.#contexts.push(context);
    return context.newPage();
  }

  async closePages(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close().catch(() => undefined);
    this.#child.kill("SIGTERM");
    const patience = setTimeout(() => this.#child.kill("SIGKILL"), 5_000);
    await this.#child.exited;
    clearTimeout(patience);
    // Its helpers end after it, and still write.
    await eventually(() => remove(this.#directory), "the browser's directory to be gone");
  }
}

function remove(directory: string): boolean {
  try {
    rmSync(directory, { recursive: true, force: true });
    return true;
  } catch {
    return false;
  }
}

/** What it says at its start, and to its end, so that it never waits for somebody to read. */
async function debuggingAddress(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    let text = "";
    for await (const bytes of stderr) {
      text = (text + decoder.decode(bytes, { stream: true })).slice(-maxKeptChars);
      const address = /ws:\/\/\S+(?=\s)/.exec(text)?.[0];
      if (address !== undefined) resolve(address);
    }
    reject(new Error(`The browser has ended: ${text}`));
  };
  void read();
  return await promise;
}
