import { connect as connectSocket } from "node:net";
import { parseIp } from "../../../shared/net/ip.ts";
import { isWindows } from "../../../shared/os/platform.ts";

/** Where a switch listens. */
export type OpenFlowAddress =
  /** A unix socket, or on Windows a named pipe: `\\.\pipe\…`. */
  { readonly t: "path"; readonly path: string } | { readonly t: "tcp"; readonly host: string; readonly port: number };

const pipePrefix = "\\\\.\\pipe\\";
/** IANA's number for OpenFlow. */
const defaultPort = 6653;

/**
 * Reads Open vSwitch's own notation: `unix:/run/openvswitch/br-int.mgmt`, `tcp:127.0.0.1:6653`, `tcp:[::1]:6653`, and
 * `\\.\pipe\NAME`. On Windows a `unix:` path stands for a pipe that has its name without slashes and backslashes.
 * @throws {Error} `Cannot read the address …`
 */
export function parseAddress(text: string, isWindows: boolean): OpenFlowAddress {
  const wrong = (is: string): Error =>
    new Error(`Cannot read the address "${text}": ${is}, wanted unix:PATH, tcp:IP:PORT or ${pipePrefix}NAME`);
  if (text.startsWith(pipePrefix) && text.length > pipePrefix.length) return { t: "path", path: text };
  if (text.startsWith("unix:")) {
    const path = text.slice(5);
    if (path === "") throw wrong("its path is empty");
    return { t: "path", path: isWindows ? pipeOf(path) : path };
  }
  const found = /^tcp:(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  if (found === null) throw wrong("it is of no form that is known");
  const host = found[1] ?? found[2] ?? "";
  const port = Number(found[3] ?? defaultPort);
  if (parseIp(host) === undefined) throw wrong(`"${host}" is not an IP address`);
  if (port < 1 || port > 65535) throw wrong(`its port is ${port}`);
  return { t: "tcp", host, port };
}

/** Whether it is a named pipe of Windows. */
const isPipe = (address: OpenFlowAddress): address is Extract<OpenFlowAddress, { t: "path" }> =>
  address.t === "path" && address.path.toLowerCase().startsWith(pipePrefix);

/** `C:\openvswitch\var\run\openvswitch\br-int.mgmt` is the pipe `C:openvswitchvarrunopenvswitchbr-int.mgmt`. */
function pipeOf(path: string): string {
  return path.startsWith(pipePrefix) ? path : pipePrefix + path.replaceAll(/[\\/]/g, "");
}

/** For people: `unix:/run/…`. */
export const addressText = (address: OpenFlowAddress): string =>
  address.t === "path" ? address.path : `tcp:${address.host}:${address.port}`;

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
  /**
   * It could not be opened, or is at its end; empty where the peer closed it in order.
   * @param wasTaken the peer had taken it, whether or not that was noticed in time for `opened`
   */
  ended(reason: string, wasTaken: boolean): void;
}

export type Connect = (address: OpenFlowAddress, listener: TransportListener) => Transport;

/** Unix sockets, named pipes and TCP. */
export const connectTransport: Connect = (address, listener) => {
  const socket = connectSocket(
    address.t === "path" ? { path: address.path } : { host: address.host, port: address.port, noDelay: true },
  );
  let reason = "";
  let wasTaken = false;
  socket.on("connect", () => {
    wasTaken = true;
    listener.opened();
  });
  socket.on("data", (chunk: Uint8Array) => listener.received(chunk));
  socket.on("drain", () => listener.drained());
  socket.on("error", (error: NodeJS.ErrnoException) => {
    reason = error.message;
    // As an error of connecting too, where it was closed before this process came to see that it was open.
    wasTaken ||= error.code === "ECONNRESET";
  });
  socket.on("close", () => listener.ended(reason, wasTaken));
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
