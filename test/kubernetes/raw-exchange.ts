import { connect } from "node:tls";

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly token?: string;
  readonly body?: object;
  readonly contentType?: string;
}

/** One chunk of an answer, as it was framed, and when it came after the request. */
export interface Chunk {
  readonly atMs: number;
  readonly text: string;
}

/** An answer as it was on the wire. */
export interface Exchange {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** When the head was complete. */
  readonly headMs: number;
  /** When it was complete, or given up. */
  readonly endMs: number;
  readonly chunks: readonly Chunk[];
  /** Whether the server said that this was all. */
  readonly isComplete: boolean;
  readonly text: string;
}

export interface Ending {
  /** Absent: until the answer is complete, and for ten seconds at most. */
  readonly chunks?: number;
  readonly ms?: number;
  /** Hears how many chunks there are, none when the head is there. */
  readonly progress?: (chunks: number) => void;
}

/** One request over HTTP/1.1, below every client that joins chunks. */
export async function exchange(url: string, ca: string, asked: Asked, ending: Ending = {}): Promise<Exchange> {
  const { chunks = Number.POSITIVE_INFINITY, ms = 10_000, progress } = ending;
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca });
  const started = performance.now();
  const body = asked.body === undefined ? "" : JSON.stringify(asked.body);
  const lines = [
    `${asked.method} ${asked.path} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    "accept: application/json",
    ...(asked.token === undefined ? [] : [`authorization: Bearer ${asked.token}`]),
    ...(body === ""
      ? []
      : [`content-type: ${asked.contentType ?? "application/json"}`, `content-length: ${body.length}`]),
  ];
  const reader = new AnswerReader(progress);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  socket.setEncoding("latin1");
  socket.on("data", (text: string) => {
    reader.take(text, performance.now() - started);
    if (reader.isComplete || reader.chunks.length >= chunks) resolve();
  });
  socket.on("error", reject);
  socket.on("close", () => resolve());
  socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  await promise.finally(() => clearTimeout(timer));
  socket.destroy();
  return { ...reader.exchange(), endMs: performance.now() - started };
}

class AnswerReader {
  readonly chunks: Chunk[] = [];
  isComplete = false;
  #rest = "";
  #status = 0;
  #headMs = Number.NaN;
  readonly #headers = new Map<string, string>();
  readonly #progress: ((chunks: number) => void) | undefined;

  constructor(progress?: (chunks: number) => void) {
    this.#progress = progress;
  }

  take(text: string, atMs: number): void {
    this.#rest += text;
    if (this.#status === 0 && !this.#takeHead(atMs)) return;
    if (this.#headers.has("content-length")) {
      this.isComplete = this.#rest.length >= Number(this.#headers.get("content-length"));
      if (this.isComplete) this.chunks.push({ atMs, text: this.#rest });
    } else while (this.#takeChunk(atMs));
  }

  exchange(): Omit<Exchange, "endMs"> {
    const text = this.chunks.map((chunk) => chunk.text).join("");
    const { chunks, isComplete } = this;
    return { status: this.#status, headers: this.#headers, headMs: this.#headMs, chunks, isComplete, text };
  }

  #takeHead(atMs: number): boolean {
    const end = this.#rest.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const [first = "", ...lines] = this.#rest.slice(0, end).split("\r\n");
    this.#status = Number(first.split(" ")[1]);
    for (const line of lines) {
      const [name = "", ...value] = line.split(": ");
      this.#headers.set(name.toLowerCase(), value.join(": "));
    }
    this.#headMs = atMs;
    this.#rest = this.#rest.slice(end + 4);
    this.#progress?.(0);
    return true;
  }

  #takeChunk(atMs: number): boolean {
    const end = this.#rest.indexOf("\r\n");
    const length = Number.parseInt(this.#rest.slice(0, end), 16);
    if (end < 0 || this.#rest.length < end + 2 + length + 2) return false;
    if (length === 0) this.isComplete = true;
    else this.chunks.push({ atMs, text: this.#rest.slice(end + 2, end + 2 + length) });
    this.#rest = this.#rest.slice(end + 2 + length + 2);
    if (length > 0) this.#progress?.(this.chunks.length);
    return length > 0;
  }
}
