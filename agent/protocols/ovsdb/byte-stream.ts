import { isWindows } from "../../../shared/os/platform.ts";
import { isDenial, whoMay } from "../../../shared/os/rights.ts";
import type { OvsdbAddress } from "./address.ts";

/** A connection that stands: bytes in and out. */
export interface ByteStream {
  /** Hands bytes to the system. @returns how many it took; it takes more after `drain` */
  write(bytes: Uint8Array): number;
  /** At once; what was not written is lost. `closed` is not told. */
  close(): void;
}

export interface StreamEvents {
  /** The bytes are the receiver's until it returns. */
  data(chunk: Uint8Array): void;
  drain(): void;
  /** Once, and nothing afterwards. */
  closed(reason: string): void;
}

export type OpenStream = (address: OvsdbAddress, events: StreamEvents, timeoutMs: number) => Promise<ByteStream>;

/**
 * Connects by a socket of Bun.
 * @throws {Error} where it comes to nothing within the time; its message continues a sentence
 */
export const openStream: OpenStream = async (address, events, timeoutMs) => {
  if (isWindows && address.t === "pipe") {
    const { requireTrustedPipe } = await import("../../../shared/os/pipe-trust.windows.ts");
    requireTrustedPipe(address.name);
  }
  let over = false;
  const closed = (reason: string): void => {
    if (over) return;
    over = true;
    events.closed(reason);
  };
  const socket = {
    binaryType: "uint8array" as const,
    data: (_: Bun.Socket, chunk: Uint8Array) => {
      if (!over) events.data(chunk);
    },
    drain: () => {
      if (!over) events.drain();
    },
    end: () => closed("the server has closed the connection"),
    close: () => closed("the server has closed the connection"),
    error: (_: Bun.Socket, error: Error) => closed(`the connection broke (${error.message})`),
  };
  const opening =
    address.t === "tcp"
      ? Bun.connect({ hostname: address.host, port: address.port, socket })
      : Bun.connect({ unix: address.t === "unix" ? address.path : address.name, socket });
  const opened = await within(opening, timeoutMs);
  return {
    // A socket that has gone answers a negative number; that it has is told by its event.
    write: (bytes) => (over ? 0 : Math.max(0, opened.write(bytes))),
    close: () => {
      over = true;
      opened.terminate();
    },
  };
};

async function within(opening: Promise<Bun.Socket>, timeoutMs: number): Promise<Bun.Socket> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), timeoutMs);
  try {
    const opened = await Promise.race([opening, late]);
    if (opened !== undefined) return opened;
    opening.then((socket) => socket.terminate()).catch(() => undefined);
    throw new Error(`it took no connection within ${timeoutMs} ms`);
  } catch (caught) {
    if (isDenial(caught)) throw new Error(`connecting fails with EACCES: it is for ${whoMay} alone`);
    throw caught instanceof Error && "code" in caught ? new Error(`connecting fails with ${caught.code}`) : caught;
  } finally {
    clearTimeout(timer);
  }
}
