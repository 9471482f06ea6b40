import { dlopen } from "bun:ffi";
import { lstatSync, mkdirSync, statSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { CniCode, CniError } from "../errors.ts";
import { letsOthersIn, ownershipRule } from "../os/rights.ts";
import { reasonOf } from "../reason.ts";
import type { SocketPlace } from "./system.ts";

/** Long enough for a listener to accept; for a frozen process the kernel accepts. */
const probeMs = 1_000;

/** A socket file; the listener creates it with its final rights. */
export class UnixSocketPlace implements SocketPlace {
  readonly #path: string;
  #own: string | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  prepare(): void {
    makeSocketDirectory(this.#path);
  }

  clear(): Promise<void> {
    return clearStaleSocket(this.#path);
  }

  settle(): void {
    this.#own = socketIdentity(this.#path);
  }

  fate(): string | undefined {
    const now = socketIdentity(this.#path);
    if (now === this.#own) return undefined;
    return now === undefined ? "is gone" : "is another program's";
  }
}

/**
 * Makes the socket's directory, 0750, where it is missing; one that is there keeps its rights. In another user's
 * directory the socket could be replaced by theirs, which would then decide pods' networks.
 */
function makeSocketDirectory(socket: string): void {
  const directory = dirname(socket);
  let is: string | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    is = letsOthersIn(statSync(directory));
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new CniError(CniCode.io, `Cannot make the directory of socket "${socket}": ${reason}`, {
      cause,
    });
  }
  if (is === undefined) return;
  throw new CniError(CniCode.io, `Cannot listen on "${socket}": its directory ${is}, wanted ${ownershipRule}`, {
    details: `chown and chmod "${directory}", or name another socket`,
  });
}

/** No other server of ours can be listening; another program's socket (a real antrea-agent's) is still asked for first. */
async function clearStaleSocket(socket: string): Promise<void> {
  const stat = lstatSync(socket, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw taken(socket, "it is no socket");
  if (await answers(socket)) throw taken(socket, "another program listens there");
  unlinkSync(socket);
}

/** Tells one socket file from another of the same name; `undefined` where there is none. */
export function socketIdentity(socket: string): string | undefined {
  const stat = lstatSync(socket, { throwIfNoEntry: false });
  return stat?.isSocket() ? `${stat.dev}:${stat.ino}` : undefined;
}

const taken = (socket: string, is: string): CniError =>
  new CniError(CniCode.io, `Cannot listen on "${socket}": ${is}, wanted a path of its own`);

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path: socket });
    const end = (listens: boolean) => (): void => {
      clearTimeout(timer);
      probe.destroy();
      resolve(listens);
    };
    // A timeout counts as listening, since it does not prove that nobody listens.
    const timer = setTimeout(end(true), probeMs);
    probe.once("connect", end(true));
    probe.once("error", end(false));
  });
}

/** `listen(2)` once more on a socket that listens already: only its queue changes. Cut to net.core.somaxconn by the kernel. */
export function listenAgain(fd: number, backlog: number): void {
  const c = dlopen("libc.so.6", { listen: { args: ["i32", "i32"], returns: "i32" } });
  const failed = c.symbols.listen(fd, backlog) !== 0;
  c.close();
  if (failed)
    throw new Error(`Cannot lengthen the queue of connections: listen refuses ${backlog}, wanted a listening socket`);
}
