import { ChannelCredentials } from "@grpc/grpc-js";
import { isWindows } from "../os/platform.ts";

type Connector = ReturnType<ChannelCredentials["_createSecureConnector"]>;

/**
 * No TLS: the rights of a unix socket's directory say who may listen there. On Windows any program may create a pipe
 * whose name is free, so the server of each connection, also of a reconnection, is checked before a byte is sent.
 */
export class ServerCredentials extends ChannelCredentials {
  readonly #address: string;
  /** Why the last attempt to connect was refused, and what is wanted; `undefined` where it was not, or failed otherwise. */
  refused: string | undefined;

  constructor(address: string) {
    super();
    this.#address = address;
  }

  override _isSecure(): boolean {
    return false;
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this;
  }

  override _createSecureConnector(...args: Parameters<ChannelCredentials["_createSecureConnector"]>): Connector {
    const plain = ChannelCredentials.createInsecure()._createSecureConnector(...args);
    if (!isWindows) return plain;
    return {
      ...plain,
      // Checked before connecting, for a server whose pipe has a single instance, and after it, for one that has taken
      // the name meanwhile.
      waitForReady: () => this.#look(),
      connect: async (socket) => {
        await this.#look();
        return plain.connect(socket);
      },
    };
  }

  /** Must not yield to the event loop, since data of the server could be lost meanwhile. */
  async #look(): Promise<void> {
    const { requireTrustedPipe, trustedServer, UntrustedPipe } = await import("../os/pipe-trust.windows.ts");
    this.refused = undefined;
    try {
      requireTrustedPipe(this.#address);
    } catch (caught) {
      if (caught instanceof UntrustedPipe) this.refused = `${caught.message}, wanted ${trustedServer}`;
      throw caught;
    }
  }
}
