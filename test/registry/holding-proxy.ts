import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A member at another address, whose answers can be held back, and whose connections can be cut with what they hold. */
export class HoldingProxy implements AsyncDisposable {
  /** How long answers are held back. */
  holdMs = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(host: string, port: number) {
    this.#server = createServer((near) => {
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
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
