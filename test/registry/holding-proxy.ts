import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A member at another address, whose answers can be held back, and whose connections can be cut with what they hold. */
export class HoldingProxy implements AsyncDisposable {
  /** How long answers are held back. */
  holdMs = 0;
  /** Whoever comes now is sent away. */
  isClosed = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(host: string, port: number) {
    this.#server = createServer((near) => {
      if (this.isClosed) return void near.destroy();
      const far = connect(port, host);
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          this.#sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      near.on("data", (data) => far.write(data));
      far.on("data", (data) => {
        if (this.holdMs === 0) near.write(data);
        else setTimeout(() => near.writable && near.write(data), this.holdMs);
      });
    });
  }

  static async to(endpoint: string): Promise<HoldingProxy> {
    const { hostname, port } = new URL(endpoint);
    const proxy = new HoldingProxy(hostname, Number(port));
    await proxy.#listen(0, (work) => work());
    return proxy;
  }

  /** At the same address and port of a network that does not lead there. */
  static async into(within: <T>(work: () => T) => T, endpoint: string): Promise<HoldingProxy> {
    const { hostname, port } = new URL(endpoint);
    const proxy = new HoldingProxy(hostname, Number(port));
    await proxy.#listen(Number(port), within);
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #listen(port: number, within: <T>(work: () => T) => T): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject);
    within(() => this.#server.listen(port, "127.0.0.1", resolve));
    await promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
