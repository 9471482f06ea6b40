import type { NetworkNamespace } from "../../support/network-namespace.ts";
import { httpPage } from "./http-page.ts";

const everyMs = 50;

/** Asks a service for a page again and again, each time by a new connection, and keeps what came of it. */
export class Load implements AsyncDisposable {
  answered = 0;
  /** What was wrong with the others, each with its time. */
  readonly failures: string[] = [];
  #ended = false;
  readonly #asking: Promise<void>;

  constructor(from: NetworkNamespace, hostname: string, port: number) {
    this.#asking = this.#ask(from, hostname, port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await this.#asking;
  }

  async #ask(from: NetworkNamespace, hostname: string, port: number): Promise<void> {
    while (!this.#ended) {
      try {
        await httpPage(from, hostname, port);
        this.answered++;
      } catch (caught) {
        this.failures.push(`${new Date().toISOString()} ${String(caught)}`);
      }
      await Bun.sleep(everyMs);
    }
  }
}
