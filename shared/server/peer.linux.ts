import { openLibrary } from "../os/native.linux.ts";
import { isWindows } from "../os/platform.ts";

const symbols = { getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" } } as const;
/** SO_PEERCRED of SOL_SOCKET: `struct ucred`, pid, uid and gid of the peer. */
const socketLevel = 1;
const peerCredentials = 17;

let opened: ReturnType<typeof open> | undefined;

const open = () => ({
  calls: openLibrary("libc.so.6", symbols),
  found: new Uint32Array(3),
  length: new Uint32Array(1),
  own: process.geteuid?.(),
});

/**
 * Whether the peer is root, or the user of this process. The socket's rights keep others out too, but somebody may have
 * changed them. A Windows pipe admits only administrators by its access list.
 * @param socket as Bun has it: its types do not know of the descriptor
 */
export function isRootPeer(socket: object): boolean {
  if (isWindows) return true;
  opened ??= open();
  const fd: unknown = Reflect.get(socket, "fd");
  if (opened.calls === undefined || typeof fd !== "number") return false;
  const { found, length, own } = opened;
  length[0] = found.byteLength;
  if (opened.calls.getsockopt(fd, socketLevel, peerCredentials, found, length) !== 0) return false;
  return found[1] === 0 || found[1] === own;
}
