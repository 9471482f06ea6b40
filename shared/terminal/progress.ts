import type { TerminalIo } from "./terminal-io.ts";

/** Often enough to show progress, seldom enough to cost nothing. */
const terminalMs = 100;
const logMs = 2000;

/**
 * Reports the progress of long work on stderr: on a terminal in one line that is overwritten, elsewhere, if it was
 * asked for, in a line now and then.
 */
export class Progress implements Disposable {
  readonly #io: TerminalIo;
  readonly #everyMs: number;
  #saidAtMs = performance.now();
  #onScreen = false;

  constructor(io: TerminalIo, wanted: boolean) {
    this.#io = io;
    this.#everyMs = io.stderrIsTerminal ? terminalMs : wanted ? logMs : Number.POSITIVE_INFINITY;
  }

  /**
   * @param what "leases checked"
   * @param total absent if unknown
   */
  at(what: string, done: number, total?: number): void {
    const now = performance.now();
    if (now - this.#saidAtMs < this.#everyMs) return;
    this.#saidAtMs = now;
    const part = total === undefined || total === 0 ? "" : ` of ${total} (${Math.floor((100 * done) / total)} %)`;
    const line = `${done}${part} ${what}`;
    this.#onScreen = this.#io.stderrIsTerminal;
    this.#io.stderr(this.#onScreen ? `\r\u001b[K${line}` : `${line}\n`);
  }

  /** Clears the line. */
  [Symbol.dispose](): void {
    if (this.#onScreen) this.#io.stderr("\r\u001b[K");
    this.#onScreen = false;
  }
}
