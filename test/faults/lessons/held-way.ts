import { connect, createServer, type Socket } from "node:net";

/** A socket that leads to another one, once it is told to: what is sent to it meanwhile waits. */
export class HeldWay implements Disposable {
  readonly path: string;
  /** Somebody has come. */
  readonly taken: Promise<void>;
  readonly #released = Promise.withResolvers<void>();
  readonly #server: ReturnType<typeof createServer>;
  readonly #sockets: Socket[] = [];

  constructor(path: string, target: string) {
    this.path = path;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.taken = promise;
    this.#server = createServer((from) => {
      this.#sockets.push(from.pause());
      resolve();
      void this.#released.promise.then(() => {
        const to = connect(target);
        this.#sockets.push(to);
        from.pipe(to).pipe(from);
      });
    }).listen(path);
  }

  release(): void {
    this.#released.resolve();
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}
