import { lstatSync, mkdirSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { CniCode, CniError } from "../errors.ts";

/** Long enough for a listener that is there to accept; a frozen one's kernel accepts for it. */
const probeMs = 1_000;

/** Makes the socket's directory, 0750, where it is missing; one that is there keeps its rights. */
export function makeSocketDirectory(socket: string): void {
  try {
    mkdirSync(dirname(socket), { recursive: true, mode: 0o750 });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CniError(
      CniCode.io,
      `Cannot make the directory of socket "${socket}": ${reason}, wanted it to be there`,
      {
        cause,
      },
    );
  }
}

/**
 * Clears the place of a socket that a dead process left. Only for the holder of the socket's lock: so no other
 * server of ours can be listening; another program's socket (a real antrea-agent's) is still asked for first.
 * @throws {CniError} code 5 where somebody listens, or where the path is something else than a socket
 */
export async function clearStaleSocket(socket: string): Promise<void> {
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
    // No answer at all is no proof that nobody is there.
    const timer = setTimeout(end(true), probeMs);
    probe.once("connect", end(true));
    probe.once("error", end(false));
  });
}
