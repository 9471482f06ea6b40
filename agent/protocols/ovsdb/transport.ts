import { isIPv6 } from "node:net";
import { withTimeout } from "../../../shared/async/with-timeout.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { isDenial, whoMay } from "../../../shared/os/rights.ts";
import { show } from "../../../shared/schema/json-fields.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";

/** Where a database listens. */
export type OvsdbAddress =
  | { readonly t: "unix"; readonly path: string }
  | { readonly t: "pipe"; readonly name: string }
  | { readonly t: "tcp"; readonly host: string; readonly port: number };

/** IANA's, as ovsdb-server(1) has it. */
const defaultPort = 6640;
const pipePrefix = "\\\\.\\pipe\\";
/** Of Windows; Open vSwitch refuses longer ones too. */
const maxPipeName = 256;

const wanted =
  '"unix:/path", "tcp:address:port" or a pipe such as "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchdb.sock"';

/**
 * Reads an address as the tools of Open vSwitch take it: `unix:/path` or `/path`, `tcp:10.0.0.1:6640`,
 * `tcp:[::1]:6640`. On Windows a path stands for the pipe that Open vSwitch makes of it; a pipe may be given by name.
 * @throws {OvsdbError} `invalid`
 */
export function parseAddress(text: string, onWindows: boolean = isWindows): OvsdbAddress {
  const scheme = /^(unix|tcp|pipe):/.exec(text)?.[1];
  const rest = scheme === undefined ? text : text.slice(scheme.length + 1);
  if (rest.includes("\0")) throw wrong(text);
  if (scheme === "tcp") return parseTcp(rest) ?? fail(text);
  if (rest.toLowerCase().startsWith(pipePrefix)) return parsePipe(rest) ?? fail(text);
  if (scheme === "pipe") throw wrong(text);
  if (onWindows) return pipeOf(rest) ?? fail(text);
  return rest.startsWith("/") ? { t: "unix", path: rest } : fail(text);
}

function parseTcp(rest: string): OvsdbAddress | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(rest);
  const [, inBrackets, name, digits] = match ?? [];
  const host = inBrackets ?? name;
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === undefined || (inBrackets !== undefined && !isIPv6(inBrackets)) || port < 1 || port > 65_535)
    return undefined;
  return { t: "tcp", host, port };
}

function parsePipe(name: string): OvsdbAddress | undefined {
  const isOne = name.length > pipePrefix.length && name.length <= maxPipeName && !name.endsWith("\\");
  return isOne ? { t: "pipe", name } : undefined;
}

/** Open vSwitch names its pipe by the path of the socket that it stands for, without the slashes of either kind. */
function pipeOf(path: string): OvsdbAddress | undefined {
  if (!/^[A-Za-z]:[\\/]./.test(path)) return undefined;
  return parsePipe(pipePrefix + path.replace(/[\\/]/g, ""));
}

const wrong = (text: string): OvsdbError =>
  new OvsdbError(OvsdbCode.invalid, `Cannot connect to a database: the address is ${show(text)}, wanted ${wanted}`);

function fail(text: string): never {
  throw wrong(text);
}

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
 * @throws {Error} if it fails within the time; its message continues a sentence
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
  const opened = await openedIn(opening, timeoutMs);
  return {
    // A closed socket answers a negative number; the closing is reported by its event.
    write: (bytes) => (over ? 0 : Math.max(0, opened.write(bytes))),
    close: () => {
      over = true;
      opened.terminate();
    },
  };
};

async function openedIn(opening: Promise<Bun.Socket>, timeoutMs: number): Promise<Bun.Socket> {
  try {
    return await withTimeout(opening, timeoutMs, () => {
      opening.then((socket) => socket.terminate()).catch(() => undefined);
      throw new Error(`it took no connection within ${timeoutMs} ms`);
    });
  } catch (caught) {
    if (isDenial(caught)) throw new Error(`connecting fails with EACCES: it is for ${whoMay} alone`);
    throw caught instanceof Error && "code" in caught ? new Error(`connecting fails with ${caught.code}`) : caught;
  }
}
