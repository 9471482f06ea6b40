import { dlopen } from "bun:ffi";

/** `listen(2)` once more on a socket that listens already: only its queue changes. Cut to net.core.somaxconn by the kernel. */
export function listenAgain(fd: number, backlog: number): void {
  const c = dlopen("libc.so.6", { listen: { args: ["i32", "i32"], returns: "i32" } });
  const failed = c.symbols.listen(fd, backlog) !== 0;
  c.close();
  if (failed)
    throw new Error(`Cannot lengthen the queue of connections: listen refuses ${backlog}, wanted a listening socket`);
}
