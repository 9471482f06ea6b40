import { eventually } from "./eventually.ts";
import type { NetworkNamespace } from "./network-namespace.ts";
import { processorMs } from "./processor-time.ts";

/** Longer than a busy process is kept waiting for a processor. */
const idleMs = 1_500;
/** When it is given up: of a large table it reads for minutes. */
const longestMs = 20 * 60_000;

/** What the kernel says of new rules and elements of a network namespace. */
export class PacketFilterMonitor implements AsyncDisposable {
  readonly #monitor: Bun.Subprocess<"ignore", "pipe", "inherit">;
  readonly #awaited = new Map<string, () => void>();
  readonly #read: Promise<void>;

  private constructor(namespace: NetworkNamespace) {
    const command = ["stdbuf", "-oL", "nft", "monitor", "new"];
    this.#monitor = namespace.within(() => Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" }));
    this.#read = this.#follow();
  }

  /** It reads all that stands before it says anything, from the start again at every change. */
  static async start(namespace: NetworkNamespace): Promise<PacketFilterMonitor> {
    const monitor = new PacketFilterMonitor(namespace);
    const { pid } = monitor.#monitor;
    const isIdle = async (): Promise<boolean> => {
      const before = processorMs(pid);
      await Bun.sleep(idleMs);
      return processorMs(pid) === before;
    };
    await eventually(isIdle, "the end of what nft monitor reads", longestMs);
    const name = "heard";
    const said = monitor.word(name);
    await namespace.run(`nft add table inet ${name}`);
    await said;
    await namespace.run(`nft delete table inet ${name}`);
    return monitor;
  }

  /** Once somebody has put something of this name there. */
  word(text: string): Promise<void> {
    return new Promise((resolve) => this.#awaited.set(text, resolve));
  }

  async #follow(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of this.#monitor.stdout) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const [text, resolve] of this.#awaited)
        if (lines.some((line) => line.split(/[\s,]/).includes(text))) {
          this.#awaited.delete(text);
          resolve();
        }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#monitor.kill();
    await this.#read;
  }
}
