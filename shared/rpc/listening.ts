/**
 * Whether somebody listens at the address, after a connection was refused. Bun shows a full queue
 * (EAGAIN) as a refusal, and only the kernel's table of sockets tells it from a file that nobody serves.
 */
export async function isListening(address: string): Promise<boolean> {
  let table: string;
  try {
    table = await Bun.file("/proc/net/unix").text();
  } catch {
    // Without the table the caller waits, since giving up could lose a call.
    return true;
  }
  for (const path of listeningPaths(table)) {
    if (path === address || (await isSameFile(path, address))) return true;
  }
  return false;
}

/** The flag of a socket that accepts connections, in the fourth column. */
const acceptsConnections = 0x10000;

/** The bound paths of listening sockets in the text of `/proc/net/unix`. */
export function listeningPaths(table: string): string[] {
  const paths: string[] = [];
  for (const line of table.split("\n")) {
    // Num RefCount Protocol Flags Type St Inode Path: seven columns without blanks, then a path that may have some.
    let at = 0;
    let flags = 0;
    for (let column = 0; column < 7 && at >= 0; column++) {
      while (line.charAt(at) === " ") at++;
      if (column === 3) flags = Number.parseInt(line.slice(at, at + 8), 16);
      at = line.indexOf(" ", at);
      if (at < 0) break;
    }
    if (at >= 0 && (flags & acceptsConnections) !== 0) paths.push(line.slice(at + 1));
  }
  return paths;
}

/** The same socket under two paths, by a symbolic link such as /var/run. `false` if one of them cannot be read. */
async function isSameFile(bound: string, address: string): Promise<boolean> {
  if (nameOf(bound) !== nameOf(address)) return false;
  try {
    const [one, other] = await Promise.all([Bun.file(bound).stat(), Bun.file(address).stat()]);
    return one.dev === other.dev && one.ino === other.ino;
  } catch {
    return false;
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
