import { Server } from "@grpc/grpc-js";
import { limits } from "../limits.ts";
import type { Logger } from "../log.ts";
import { listenUnix, type UnixListener } from "./authority-front.ts";
import type { CallTracker } from "./call-tracker.ts";
import { type Rpc, toService } from "./handlers.ts";

/** After this long without a call a connection is closed; by default half-open ones would stay for ever. */
const idleMs = 30_000;
/**
 * The last answers leave the process in the turns after their handlers end, and grpc-js does not say when they have;
 * a session that is closed before drops them.
 */
const flushMs = 50;
/** How long clients that stay connected have to take leave. */
const farewellMs = 500;

/** The gRPC server of the agent on its socket. */
export class RpcServer {
  readonly #server: Server;
  readonly #tracker: CallTracker;
  readonly #listener: UnixListener;

  private constructor(server: Server, tracker: CallTracker, listener: UnixListener) {
    this.#server = server;
    this.#tracker = tracker;
    this.#listener = listener;
  }

  static async listen(
    socket: string,
    services: readonly (readonly Rpc[])[],
    tracker: CallTracker,
    logger: Logger,
  ): Promise<RpcServer> {
    const server = new Server({
      "grpc.max_connection_idle_ms": idleMs,
      "grpc.max_receive_message_length": limits.messageBytes,
      "grpc.max_send_message_length": limits.messageBytes,
      "grpc.max_concurrent_streams": 1_000,
    });
    for (const rpcs of services) {
      const { definition, implementation } = toService(rpcs, tracker, logger);
      server.addService(definition, implementation);
    }
    return new RpcServer(server, tracker, await listenUnix(server, socket));
  }

  /** Takes no more calls, waits for those in flight, then closes. Answers whether all of them ended in time. */
  async close(withinMs: number): Promise<boolean> {
    await this.#listener.close();
    const ended = await this.#tracker.close(withinMs);
    await new Promise((resolve) => setTimeout(resolve, flushMs));
    await this.#takeLeave();
    this.#server.forceShutdown();
    return ended;
  }

  #takeLeave(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, farewellMs);
      this.#server.tryShutdown(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
