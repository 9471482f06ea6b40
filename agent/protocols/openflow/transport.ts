import { connect as connectSocket } from "node:net";
import { isWindows } from "../../../shared/os/platform.ts";
import { isPipe, type OpenFlowAddress } from "./address.ts";

/** Bytes out. What comes in goes to the listener. */
export interface Transport {
  /** @returns whether there is room for more; if not, `drained` tells when */
  write(bytes: Uint8Array): boolean;
  /** At once; nothing is told afterwards but `ended`, once. */
  close(): void;
}

export interface TransportListener {
  opened(): void;
  received(chunk: Uint8Array): void;
  drained(): void;
  /** It could not be opened, or is at its end; empty where the peer closed it in order. */
  ended(reason: string): void;
}

export type Connect = (address: OpenFlowAddress, listener: TransportListener) => Transport;

/** Unix sockets, named pipes and TCP. */
export const connectTransport: Connect = (address, listener) => {
  const socket = connectSocket(
    address.t === "path" ? { path: address.path } : { host: address.host, port: address.port, noDelay: true },
  );
  let reason = "";
  socket.on("connect", () => listener.opened());
  socket.on("data", (chunk: Uint8Array) => listener.received(chunk));
  socket.on("drain", () => listener.drained());
  socket.on("error", (error: Error) => {
    reason = error.message;
  });
  socket.on("close", () => listener.ended(reason));
  return { write: (bytes) => socket.write(bytes), close: () => socket.destroy() };
};

/**
 * Refuses a pipe of Windows that another than an administrator's process serves: any program may take a name that is
 * free. Nothing to refuse elsewhere: a socket's directory says who may listen there.
 * @throws {Error}
 */
export async function requireTrusted(address: OpenFlowAddress): Promise<void> {
  if (!isWindows || !isPipe(address)) return;
  const { requireTrustedPipe } = await import("../../../shared/os/pipe-trust.windows.ts");
  requireTrustedPipe(address.path);
}

/** For people: `unix:/run/…`. */
export const addressText = (address: OpenFlowAddress): string =>
  address.t === "path" ? address.path : `tcp:${address.host}:${address.port}`;
