import { ChannelCredentials } from "@grpc/grpc-js";
import { isWindows } from "../os/platform.ts";

type Connector = ReturnType<ChannelCredentials["_createSecureConnector"]>;

/**
 * No TLS: who may listen at a unix socket its directory says. On Windows any program may make a pipe of a name that is
 * free, so each connection is looked at before a byte is sent on it, those that grpc-js makes anew too.
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
      // Before, for whoever has the only instance of its pipe; and behind, for whoever has taken the name meanwhile.
      waitForReady: () => this.#look(),
      connect: async (socket) => {
        await this.#look();
        return plain.connect(socket);
      },
    };
  }

  /** Without a turn of the event loop, in which what a server says could be lost. */
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
