import type { NetworkNamespace } from "../../support/network-namespace.ts";
import { httpPage } from "./http-page.ts";

const everyMs = 50;

/** Asks a service for a page again and again, each time by a new connection, and counts what came of it. */
export class Load implements AsyncDisposable {
  answered = 0;
  failed = 0;
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
      if ((await httpPage(from, hostname, port)) === undefined) this.failed++;
      else this.answered++;
      await Bun.sleep(everyMs);
    }
  }
}
