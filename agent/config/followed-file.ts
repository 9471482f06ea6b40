import { type BigIntStats, constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { pause } from "../../shared/async/abortable.ts";
import { type Live, LiveValue } from "../../shared/async/live-value.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { ReadDocument } from "../../shared/schema/mod.ts";
import { openToOthers } from "./own-files.ts";

export interface FollowedFileOptions<T> {
  readonly path: string;
  /** What it holds, for the log: `services`. */
  readonly what: string;
  readonly maxBytes: number;
  read(text: string): ReadDocument<T>;
  readonly logger: Logger;
  /** Called after each check of a wrong file with its fault, and with `undefined` when the file was accepted. */
  told?(fault: string | undefined): void;
  /** Between two looks; absent: 250 ms. */
  readonly intervalMs?: number;
}

/** Checking an unchanged file takes one system call. */
const defaultIntervalMs = 250;
/** The number of faults that are logged; the first ones say enough. */
const maxProblemsLogged = 10;

/**
 * A file that others write and the agent follows. It is polled, because notifications miss replaced files, switched
 * links (as the kubelet's) and network file systems. A changed file is read once it has not changed for one interval,
 * since half of a YAML list is valid YAML too. If the file is wrong, missing or writable by others, the old value stays
 * and the reason is logged.
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

  /** Why the file's present content is not the value; nothing if it is. */
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
      // Without an earlier value, an incomplete file is better than none.
      if (mark === this.#read || (mark !== before && before !== "first")) return mark;
      const isOpen = openToOthers(path);
      // Checked again each time, since rights change without the content.
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

  /** Reads no more than the size that was seen; later changes are found by the next check. */
  async #text({ size, ...found }: BigIntStats): Promise<string | ReadDocument<never>> {
    const { path, maxBytes } = this.#options;
    const wrong = (is: string): ReadDocument<never> => ({ t: "wrong", problems: [`"${path}" ${is}`] });
    if ((Number(found.mode) & constants.S_IFMT) !== constants.S_IFREG) return wrong("is no file, wanted a regular one");
    if (size > maxBytes) return wrong(`has ${size} bytes, wanted ${maxBytes} at the most`);
    // Opened so that a named pipe in its place does not block.
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

  /** The same faults are logged only once. */
  #say(problems: readonly string[]): void {
    const text = problems.slice(0, maxProblemsLogged).join("; ");
    this.#options.told?.(text);
    if (text === this.#said) return;
    this.#said = text;
    const { what, path, logger } = this.#options;
    const kept = this.current === undefined ? "there are none yet" : "those from before stay";
    logger.error(`Cannot take the ${what}: ${text}`, { path, problems: problems.length, kept });
  }
}
