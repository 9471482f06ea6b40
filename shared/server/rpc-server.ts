import { Server } from "@grpc/grpc-js";
import { limits } from "../limits.ts";
import type { Logger } from "../log.ts";
import { listenUnix, type UnixListener } from "./authority-front.ts";
import type { CallTracker } from "./call-tracker.ts";
import { type Rpc, toService } from "./handlers.ts";
import { Health } from "./health.ts";

/** After this long without a call a connection is closed; by default half-open ones would stay for ever. */
const idleMs = 30_000;
/**
 * The last answers leave the process in the turns after their handlers end, and grpc-js does not say when they have;
 * a session that is closed before drops them.
 */
const flushMs = 50;
/** How long clients that stay connected have to take leave. */
const farewellMs = 500;

/** A gRPC server on a unix socket, or a Windows pipe, that tells its health besides the services it is given. */
export class RpcServer {
  /** Not serving, until somebody says so. */
  readonly health: Health;
  readonly #server: Server;
  readonly #tracker: CallTracker;
  readonly #listener: UnixListener;

  private constructor(server: Server, tracker: CallTracker, listener: UnixListener, health: Health) {
    this.#server = server;
    this.#tracker = tracker;
    this.#listener = listener;
    this.health = health;
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
    const health = new Health(services.flat().map(({ method }) => serviceOf(method.path)));
    for (const rpcs of [...services, health.rpcs]) {
      const { definition, implementation } = toService(rpcs, tracker, logger);
      server.addService(definition, implementation);
    }
    return new RpcServer(server, tracker, await listenUnix(server, socket), health);
  }

  /** Takes no more calls, waits for those in flight, then closes. Answers whether all of them ended in time. */
  async close(withinMs: number): Promise<boolean> {
    await this.#listener.close();
    this.health.close();
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

/** `package.Service` in `/package.Service/Name`. */
const serviceOf = (path: string): string => path.split("/")[1] ?? "";
