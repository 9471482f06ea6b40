import { noteKeyUse, privateKeyMadeMs, privateKeyUsedMs } from "../../../../cluster/own-key.ts";

const hourMs = 3_600_000;
/**
 * By how much the clock may be behind: what others do not take meanwhile is asked for once more before the keys of before
 * end. It is noted no more often either that the key is in use.
 */
const toleratedMs = 60_000;

/**
 * When the node's key should give way to another one: after some time, and when the clock was set back. Others remember
 * the time of a key's last handshake, by this node's clock, and take no earlier one of it: so until that time comes once
 * more they hear this node under another key alone.
 */
export class KeyLife {
  readonly #dataDir: string;
  readonly #rotateMs: number;
  /** When the key was made: the time stamp of its file, and the same by a clock that nobody sets. */
  #made: { readonly stampMs: number; readonly steadyMs: number } | undefined;
  #usedMs: number;
  #behind: Date | undefined;

  /** @param rotateHours absent: for ever */
  constructor(dataDir: string, rotateHours = Number.POSITIVE_INFINITY) {
    this.#dataDir = dataDir;
    this.#rotateMs = rotateHours * hourMs;
    this.#usedMs = privateKeyUsedMs(dataDir);
    this.#ageMs(Date.now(), performance.now());
  }

  /** The time from which on others take handshakes of the key again; `undefined`: now. */
  get behind(): Date | undefined {
    return this.#behind;
  }

  /**
   * @param clockMs milliseconds of the clock
   * @param steadyMs milliseconds of a clock that nobody sets
   * @param handshakeMs the latest of the handshakes of which this is the first news, by the clock; 0: none
   * @returns why another key is due
   * @throws {CniError} code 5
   */
  look(clockMs: number, steadyMs: number, handshakeMs: number): "age" | "clock" | undefined {
    const usedMs = Math.max(clockMs, handshakeMs);
    if (usedMs > this.#usedMs + toleratedMs) this.#note(usedMs);
    this.#behind = clockMs < this.#usedMs - toleratedMs ? new Date(this.#usedMs) : undefined;
    if (this.#behind !== undefined) return "clock";
    return this.#ageMs(clockMs, steadyMs) > this.#rotateMs ? "age" : undefined;
  }

  /** There is another key from now on, of which nobody remembers anything. @throws {CniError} code 5 */
  renewed(clockMs: number, steadyMs: number): void {
    this.#made = { stampMs: privateKeyMadeMs(this.#dataDir), steadyMs };
    this.#behind = undefined;
    this.#note(clockMs);
  }

  /** By the clock as it was when the file's time stamp was first seen: a clock that is set makes no key older. */
  #ageMs(clockMs: number, steadyMs: number): number {
    const stampMs = privateKeyMadeMs(this.#dataDir);
    if (this.#made?.stampMs !== stampMs) this.#made = { stampMs, steadyMs: steadyMs - Math.max(0, clockMs - stampMs) };
    return steadyMs - this.#made.steadyMs;
  }

  #note(usedMs: number): void {
    this.#usedMs = usedMs;
    noteKeyUse(this.#dataDir, usedMs);
  }
}
