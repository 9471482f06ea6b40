import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** Where the stubs look for the port, on drive C. */
export const portFile = "C:\\pipette-test\\port";

/** A field of a message; `null` stands for a null pointer. */
export type Field = string | null;

/** What the stubs say, and what becomes of it. */
export interface StubHost {
  /** @returns the fields of the answer; what it rejects with breaks the caller's connection */
  ask(fields: readonly Field[]): Promise<readonly Field[]>;
  /** The first two fields were "life" and a process id: this process uses the stubs from now on. */
  began(pid: number): void;
  /** That process has ended, however that came. */
  ended(pid: number): void;
}

const lengthBytes = 4;
const nullLength = 0xffff_ffff;

/** The other end of `channel.c`. */
export class StubChannel implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #open: ReadonlySet<Socket>;

  private constructor(server: Server, open: ReadonlySet<Socket>) {
    this.#server = server;
    this.#open = open;
    this.port = (server.address() as AddressInfo).port;
  }

  static async open(host: StubHost): Promise<StubChannel> {
    const open = new Set<Socket>();
    const server = createServer((socket) => {
      open.add(socket);
      socket.on("close", () => open.delete(socket));
      serve(socket, host);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new StubChannel(server, open);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** One message in, one out; of a `life` none out. */
function serve(socket: Socket, host: StubHost): void {
  let received = Buffer.alloc(0);
  let taken = false;
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (taken || received.length < lengthBytes) return;
    if (received.length < lengthBytes + received.readUInt32LE(0)) return;
    taken = true;
    const fields = decode(received.subarray(lengthBytes));
    if (fields[0] === "life") {
      const pid = Number(fields[1]);
      host.began(pid);
      socket.on("close", () => host.ended(pid));
      return;
    }
    host.ask(fields).then(
      (answer) => socket.end(encode(answer)),
      () => socket.destroy(),
    );
  });
}

function decode(message: Buffer): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < message.length; ) {
    const length = message.readUInt32LE(at);
    at += lengthBytes;
    fields.push(length === nullLength ? null : message.toString("utf8", at, at + length));
    if (length !== nullLength) at += length;
  }
  return fields;
}

function encode(fields: readonly Field[]): Buffer {
  const parts = fields.flatMap((field) => {
    const bytes = Buffer.from(field ?? "");
    return [lengthOf(field === null ? nullLength : bytes.length), bytes];
  });
  const body = Buffer.concat(parts);
  return Buffer.concat([lengthOf(body.length), body]);
}

function lengthOf(value: number): Buffer {
  const bytes = Buffer.alloc(lengthBytes);
  bytes.writeUInt32LE(value);
  return bytes;
}
