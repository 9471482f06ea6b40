import type { ApiAnswer, ApiRequest, Transport } from "../../../shared/kubernetes/transport.ts";

/** What a scripted server does with one request. */
export type Play =
  | {
      readonly t: "answer";
      readonly status?: number;
      readonly body: unknown;
      readonly headers?: Record<string, string>;
    }
  /** The headers and then these pieces, as they are. */
  | {
      readonly t: "stream";
      readonly pieces: readonly (string | Uint8Array)[];
      readonly ending: "end" | "go on" | Error;
    }
  /** No answer at all. */
  | { readonly t: "break"; readonly error: Error }
  | { readonly t: "mute" };

/** For tests only: a transport that answers what it is told to. */
export class ScriptedTransport implements Transport {
  readonly #play: (request: ApiRequest, count: number) => Play;
  /** `GET /api/v1/pods?limit=500`, in order. */
  readonly asked: string[] = [];
  readonly requests: ApiRequest[] = [];
  /** Streams that go on. */
  readonly #open = new Set<ReadableStreamDefaultController<Uint8Array>>();

  constructor(play: (request: ApiRequest, count: number) => Play) {
    this.#play = play;
  }

  get open(): number {
    return this.#open.size;
  }

  /** To all watches. */
  send(piece: string): void {
    for (const out of this.#open) out.enqueue(new TextEncoder().encode(piece));
  }

  async request(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    signal.throwIfAborted();
    this.asked.push(`${request.method} ${request.path}`);
    this.requests.push(request);
    const play = this.#play(request, this.asked.length);
    if (play.t === "break") throw play.error;
    if (play.t === "mute") {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      return await promise;
    }
    const headers: Record<string, string> = play.t === "answer" ? (play.headers ?? {}) : {};
    return {
      status: play.t === "answer" ? (play.status ?? 200) : 200,
      header: (name) => headers[name],
      body: this.#bodyOf(play, signal),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const out of this.#open) out.close();
    this.#open.clear();
  }

  #bodyOf(play: Extract<Play, { t: "answer" | "stream" }>, signal: AbortSignal): ReadableStream<Uint8Array> {
    const bytes = (piece: string | Uint8Array): Uint8Array =>
      typeof piece === "string" ? new TextEncoder().encode(piece) : piece;
    const pieces = play.t === "stream" ? play.pieces : [JSON.stringify(play.body)];
    const end = play.t === "stream" ? play.ending : "end";
    let own: ReadableStreamDefaultController<Uint8Array> | undefined;
    const over = (): void => {
      if (own !== undefined) this.#open.delete(own);
    };
    return new ReadableStream<Uint8Array>({
      start: (out) => {
        own = out;
        for (const piece of pieces) out.enqueue(bytes(piece));
        if (end === "end") return out.close();
        if (end !== "go on") return void setTimeout(() => out.error(end), 5);
        this.#open.add(out);
        const onAbort = (): void => {
          over();
          out.error(signal.reason);
        };
        signal.addEventListener("abort", onAbort, { once: true });
      },
      cancel: over,
    });
  }
}
