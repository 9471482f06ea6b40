import { readFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type AnswerText, decodeAnswers, encodeRequest, type RequestText } from "../fakes/forward-request.ts";

/** The build id of the compiled executables, as the compiler gives it to them. */
export function compiledBuildId(): Uint8Array {
  const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
  return Uint8Array.fromHex(readFileSync(join(root, "dist", "linux-x64", ".stamp"), "utf8").slice(0, 32));
}

/** A caller on its way. */
export class ForwardClient implements Disposable {
  readonly #socket: Socket;
  readonly #parts: Buffer[] = [];
  readonly #closed = Promise.withResolvers<void>();

  constructor(path: string) {
    this.#socket = createConnection({ path });
    this.#socket.on("data", (part: Buffer) => this.#parts.push(part));
    // What it ends by is told by what came before.
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", () => this.#closed.resolve());
  }

  send(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  get answers(): readonly AnswerText[] {
    return decodeAnswers(Buffer.concat(this.#parts));
  }

  /** All that the server has said when it has closed. */
  async ended(): Promise<readonly AnswerText[]> {
    await this.#closed.promise;
    return this.answers;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** One call from its first byte to the last of its answers. */
export async function forward(path: string, request: RequestText): Promise<readonly AnswerText[]> {
  using client = new ForwardClient(path);
  client.send(encodeRequest({ buildId: compiledBuildId(), ...request }));
  return await client.ended();
}
