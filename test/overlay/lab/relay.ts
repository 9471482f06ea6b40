import { connect, createServer, type Server, type Socket } from "node:net";
import type { NetworkNamespace } from "../../support/network-namespace.ts";

/** Has what listens on a port of this process's own loopback answer in a namespace too, at an address of that. */
export class Relay implements Disposable {
  readonly #server: Server;
  readonly #ends = new Set<Socket>();

  constructor(namespace: NetworkNamespace, address: string, port: number) {
    this.#server = createServer((end) => {
      const back = connect(port, "127.0.0.1");
      for (const each of [end, back]) {
        this.#ends.add(each);
        each.on("error", () => undefined);
        each.on("close", () => {
          this.#ends.delete(each);
          end.destroy();
          back.destroy();
        });
      }
      end.pipe(back).pipe(end);
    });
    // The socket is made at once, so that it is the namespace's.
    namespace.within(() => void this.#server.listen(port, address));
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const end of this.#ends) end.destroy();
  }
}
