import { openLibrary, openRoom } from "../os/native.linux.ts";
import { isWindows } from "../os/platform.ts";

const symbols = { getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" } } as const;
/** SO_PEERCRED of SOL_SOCKET: `struct ucred`, pid, uid and gid of the peer. */
const socketLevel = 1;
const peerCredentials = 17;

let opened: { readonly it: ReturnType<typeof open> } | undefined;

/** Three words, and one for their length behind them. */
const credentialsBytes = 12;

function open() {
  const room = openRoom(credentialsBytes + 4);
  const calls = openLibrary("libc.so.6", symbols);
  if (room === undefined || calls === undefined) return undefined;
  const at = room.address;
  const own = process.geteuid?.();
  return { calls, words: new Uint32Array(room.buffer), at, lengthAt: (at + credentialsBytes) as typeof at, own };
}

/**
 * Whether the peer is root, or the user of this process. The socket's rights keep others out too, but somebody may have
 * changed them. A Windows pipe admits only administrators by its access list.
 * @param socket as Bun has it: its types do not know of the descriptor
 */
export function isRootPeer(socket: object): boolean {
  if (isWindows) return true;
  opened ??= { it: open() };
  const fd: unknown = Reflect.get(socket, "fd");
  if (opened.it === undefined || typeof fd !== "number") return false;
  const { calls, words, at, lengthAt, own } = opened.it;
  words[3] = credentialsBytes;
  if (calls.getsockopt(fd, socketLevel, peerCredentials, at, lengthAt) !== 0) return false;
  return words[1] === 0 || words[1] === own;
}
