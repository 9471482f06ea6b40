import { innerProcess } from "../support/inner-process.ts";
import type { PrivateNode } from "../support/private-node.ts";

const everySeconds = 0.05;

/** Pings that go on while something happens, twenty in a second. */
export class Pinging {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "inherit">;
  readonly #read: Promise<void>;
  #text = "";

  private constructor(child: Bun.Subprocess<"ignore", "pipe", "inherit">) {
    this.#child = child;
    this.#read = this.#collect();
  }

  /** From the network namespace at `path`. */
  static start(node: PrivateNode, path: string, address: string): Pinging {
    const ping = ["ping", "-n", "-i", String(everySeconds), "-W", "2", address];
    const command = [...node.prefix, "nsenter", `--net=${path}`, ...ping];
    return new Pinging(Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" }));
  }

  /** Waits for this many more answers. @throws when they do not come */
  async answered(more: number): Promise<void> {
    const wanted = this.#answers + more;
    const until = performance.now() + 10_000;
    while (this.#answers < wanted) {
      if (performance.now() > until) throw new Error(`No traffic: ${this.#text}`);
      await Bun.sleep(20);
    }
  }

  /** Ends them; the last one may have been on its way. */
  async stop(): Promise<{ readonly sent: number; readonly lost: number }> {
    process.kill(innerProcess(this.#child.pid), "SIGINT");
    await this.#child.exited;
    await this.#read;
    const [, sent = "", received = ""] = /(\d+) packets transmitted, (\d+) received/.exec(this.#text) ?? [];
    if (sent === "") throw new Error(`No summary of the pings: ${this.#text}`);
    const seen = [...this.#text.matchAll(/icmp_seq=(\d+) ttl/g)].map((match) => Number(match[1]));
    const last = Math.max(0, ...seen);
    return { sent: Number(sent), lost: last - Math.min(last, Number(received)) };
  }

  get #answers(): number {
    return this.#text.split(" ttl=").length - 1;
  }

  async #collect(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#child.stdout) this.#text += decoder.decode(chunk, { stream: true });
  }
}
