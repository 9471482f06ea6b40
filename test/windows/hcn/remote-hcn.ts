import { createServer, type Server, type Socket } from "node:net";
import type { Hcn, HcnOptions } from "../../../agent/protocols/hcn/mod.ts";
import type { Answer, Request } from "../programs/hcn-driver.ts";
import type { WinePrefix } from "../wine/prefix.ts";
import type { Program } from "../wine/program.ts";

type Calls = Omit<Hcn, "leaked" | typeof Symbol.asyncDispose>;
export type DriverError = NonNullable<Answer["error"]>;

/** The binding inside of a Windows program (`programs/hcn-driver.ts`), call by call. */
export class RemoteHcn implements AsyncDisposable {
  readonly program: Program;
  readonly #server: Server;
  readonly #socket: Socket;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  private constructor(program: Program, server: Server, socket: Socket) {
    this.program = program;
    this.#server = server;
    this.#socket = socket;
    let received = "";
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      const lines = (received + text).split("\n");
      received = lines.pop() ?? "";
      for (const line of lines) this.#answered(JSON.parse(line) as Answer);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      for (const { reject } of this.#pending.values()) reject(new Error(`The program is gone:\n${program.stderr}`));
    });
  }

  static async start(prefix: WinePrefix, executable: string, options: HcnOptions = {}): Promise<RemoteHcn> {
    const connected = Promise.withResolvers<Socket>();
    const server = createServer((socket) => connected.resolve(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const port = (server.address() as { readonly port: number }).port;
    const program = prefix.start(executable, { args: [String(port), JSON.stringify(options)] });
    program.ended.then(({ stderr }) => connected.reject(new Error(`The program ended:\n${stderr}`)), connected.reject);
    return new RemoteHcn(program, server, await connected.promise);
  }

  /** @returns what the call answers, as JSON carries it. @throws {DriverError} */
  call<K extends keyof Calls>(call: K, ...args: Parameters<Calls[K]>): Promise<Awaited<ReturnType<Calls[K]>>> {
    return this.#ask(call, args) as Promise<Awaited<ReturnType<Calls[K]>>>;
  }

  /** What a call fails with. */
  async refused<K extends keyof Calls>(call: K, ...args: Parameters<Calls[K]>): Promise<DriverError> {
    try {
      await this.#ask(call, args);
    } catch (caught) {
      if (!(caught instanceof Error)) return caught as DriverError;
      throw caught;
    }
    throw new Error(`Expected ${call} to be refused`);
  }

  leaked(): Promise<number> {
    return this.#ask("leaked") as Promise<number>;
  }

  lost(): Promise<readonly string[]> {
    return this.#ask("lost") as Promise<readonly string[]>;
  }

  /** The longest time that the program's main thread did not run its timer of 10 ms, since it was asked last. */
  longestGapMs(): Promise<number> {
    return this.#ask("longestGapMs") as Promise<number>;
  }

  /** Lists all endpoints so many times, and answers how many there were each time. */
  listEndpoints(times: number): Promise<number> {
    return this.#ask("listEndpoints", [times]) as Promise<number>;
  }

  /** Closes the binding. */
  async close(): Promise<void> {
    await this.#ask("dispose");
  }

  /** Without anybody at the other end the program ends by itself. */
  hangUp(): void {
    this.#socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    this.#server.close();
    await this.program[Symbol.asyncDispose]();
  }

  #ask(call: string, args: readonly unknown[] = []): Promise<unknown> {
    const asked = Promise.withResolvers<unknown>();
    const request: Request = { id: ++this.#lastId, call, args };
    this.#pending.set(request.id, asked);
    this.#socket.write(`${JSON.stringify(request)}\n`);
    return asked.promise;
  }

  #answered({ id, value, error }: Answer): void {
    const asked = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) asked?.resolve(value);
    else asked?.reject(error);
  }
}
