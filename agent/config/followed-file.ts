import { type BigIntStats, constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { pause } from "../../shared/async/abortable.ts";
import { type Live, LiveValue } from "../../shared/async/live-value.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import { openToOthers } from "./own-files.ts";

/** What a text says, or every fault of it as a sentence with its line. */
export type ReadText<T> =
  | { readonly t: "ok"; readonly value: T }
  | { readonly t: "wrong"; readonly problems: readonly string[] };

export interface FollowedFileOptions<T> {
  readonly path: string;
  /** What it holds, for the log: `services`. */
  readonly what: string;
  readonly mostBytes: number;
  read(text: string): ReadText<T>;
  readonly logger: Logger;
  /** Hears after each look at a file that is wrong what is, and `undefined` when it has been taken. */
  told?(fault: string | undefined): void;
  /** Between two looks; absent: 250 ms. */
  readonly intervalMs?: number;
}

/** A look is one system call on a file that has not changed. */
const defaultIntervalMs = 250;
/** Of a text that is wrong from end to end, the first sentences say enough. */
const problemsLogged = 10;

/**
 * A file that others write and the agent follows. Looked at, not subscribed to: that also sees files that are replaced,
 * links that are turned (as the kubelet does) and network file systems. A changed file is read once it has held
 * still for one interval, since half of a YAML list is a YAML list too. One that is wrong, or gone, leaves the value
 * that was there, and a line in the log; so does one that others may change.
 */
export class FollowedFile<T> implements Live<T>, AsyncDisposable {
  readonly #options: FollowedFileOptions<T>;
  readonly #value = new LiveValue<T>();
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  /** Mark of the state that was read last. */
  #read: string | undefined;
  #said: string | undefined;

  constructor(options: FollowedFileOptions<T>) {
    this.#options = options;
    this.#ended = this.#follow();
  }

  get current(): T | undefined {
    return this.#value.current;
  }

  /** Why what is in the file now is not the value; nothing where it is. */
  get fault(): string | undefined {
    return this.#said;
  }

  subscribe(listener: (value: T) => void): Disposable {
    return this.#value.subscribe(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #follow(): Promise<void> {
    let before = await this.#look("first");
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await pause(this.#options.intervalMs ?? defaultIntervalMs, signal);
      if (!signal.aborted) before = await this.#look(before);
    }
  }

  /** Reads the file if it has changed and is now as it was `before`; answers how it is now, `undefined` where it is not. */
  async #look(before: string | undefined): Promise<string | undefined> {
    const { path } = this.#options;
    try {
      const found = await stat(path, { bigint: true });
      const mark = `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}`;
      // Where there is nothing to keep, half of it is better than none.
      if (mark === this.#read || (mark !== before && before !== "first")) return mark;
      const isOpen = openToOthers(path);
      // Tried again at each look: rights change without the file.
      this.#read = isOpen === undefined ? mark : undefined;
      if (isOpen !== undefined) {
        this.#say([isOpen]);
        return mark;
      }
      const text = await this.#text(found);
      const answer = typeof text === "string" ? this.#options.read(text) : text;
      if (answer.t === "wrong") this.#say(answer.problems);
      else {
        this.#said = undefined;
        this.#options.told?.(undefined);
        this.#value.set(answer.value);
      }
      return mark;
    } catch (caught) {
      this.#read = undefined;
      this.#say([`"${path}" cannot be read: ${reasonOf(caught)}`]);
      return undefined;
    }
  }

  /** No more than was seen: what came since shows at the next look. */
  async #text({ size, ...found }: BigIntStats): Promise<string | ReadText<never>> {
    const { path, mostBytes } = this.#options;
    const wrong = (is: string): ReadText<never> => ({ t: "wrong", problems: [`"${path}" ${is}`] });
    if ((Number(found.mode) & constants.S_IFMT) !== constants.S_IFREG) return wrong("is no file, wanted a regular one");
    if (size > mostBytes) return wrong(`has ${size} bytes, wanted ${mostBytes} at the most`);
    // Should a pipe have taken its place since, nobody waits for its writer.
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const bytes = new Uint8Array(Number(size));
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return new TextDecoder().decode(bytes.subarray(0, length));
  }

  /** The same again is said once. */
  #say(problems: readonly string[]): void {
    const text = problems.slice(0, problemsLogged).join("; ");
    this.#options.told?.(text);
    if (text === this.#said) return;
    this.#said = text;
    const { what, path, logger } = this.#options;
    const kept = this.current === undefined ? "there are none yet" : "those from before stay";
    logger.error(`Cannot take the ${what}: ${text}`, { path, problems: problems.length, kept });
  }
}
