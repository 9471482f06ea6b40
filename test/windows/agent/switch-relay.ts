import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP port of this machine that stands for a unix socket of Open vSwitch: Wine knows none of those. */
export class SwitchRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(path: string) {
    this.#server = createServer((end) => {
      const back = connect(path);
      for (const [each, other] of [
        [end, back],
        [back, end],
      ] as const) {
        this.#open.add(each);
        each.on("error", () => undefined);
        each.on("close", () => {
          this.#open.delete(each);
          other.destroy();
        });
      }
      end.pipe(back).pipe(end);
    });
  }

  static async open(path: string): Promise<SwitchRelay> {
    const relay = new SwitchRelay(path);
    await new Promise<void>((resolve) => relay.#server.listen(0, "127.0.0.1", resolve));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
