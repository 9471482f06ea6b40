import type { NetworkNamespace } from "./network-namespace.ts";

/** Counts datagrams that reach a socket in a namespace. */
export class UdpEar implements Disposable {
  heard = 0;
  #close: () => void = () => undefined;

  /** @param port 0: one that is free */
  static async open(namespace: NetworkNamespace, hostname: string, port: number): Promise<UdpEar> {
    const ear = new UdpEar();
    const data = (): void => {
      ear.heard += 1;
    };
    const socket = await namespace.within(() => Bun.udpSocket({ hostname, port, socket: { data } }));
    ear.#close = () => socket.close();
    return ear;
  }

  [Symbol.dispose](): void {
    this.#close();
  }
}
