import { limits } from "../limits.ts";
import type { Logger } from "../log.ts";
import type { CallTracker } from "./call-tracker.ts";
import { ConnectionRegistry } from "./connection-registry.ts";
import { firstBytes } from "./first-bytes.linux.ts";
import { ForwardedCalls, type Forwarding } from "./forward/forwarded-calls.ts";
import { openCalls, type Rpc } from "./handlers.ts";
import { Health } from "./health.ts";
import { isRootPeer } from "./peer.linux.ts";
import { ServedConnection } from "./served-connection.ts";
import { Turns } from "./turns.ts";
import { type ListenOptions, UnixListener } from "./unix-listener.ts";

/** How long clients have to read the last answers: on a busy node a client may not run for a second. */
const farewellMs = 3_000;

export interface ServeOptions extends ListenOptions {
  /** What answers calls that a plugin's process has handed on; absent: nothing does. */
  readonly forwarding?: Forwarding | undefined;
}

/** A gRPC server on a unix socket, or a Windows pipe, that tells its health besides the services it is given. */
export class RpcServer {
  /** Initially not serving. */
  readonly health: Health;
  readonly #tracker: CallTracker;
  readonly #connections: ConnectionRegistry;
  readonly #listener: UnixListener;
  readonly #sweep: ReturnType<typeof setInterval>;

  private constructor(health: Health, tracker: CallTracker, connections: ConnectionRegistry, listener: UnixListener) {
    this.health = health;
    this.#tracker = tracker;
    this.#connections = connections;
    this.#listener = listener;
    this.#sweep = setInterval(() => connections.sweep(), limits.idleConnectionMs / 10);
  }

  /** @throws {NodeJS.ErrnoException} where the socket cannot be made; EADDRINUSE where its path is not free */
  static async listen(
    socket: string,
    services: readonly (readonly Rpc[])[],
    tracker: CallTracker,
    logger: Logger,
    options: ServeOptions = {},
  ): Promise<RpcServer> {
    const health = new Health(services.flat().map(({ method }) => serviceOf(method.path)));
    const open = openCalls([...services.flat(), ...health.rpcs], tracker, logger);
    const connections = new ConnectionRegistry(logger, options.connections);
    const turns = new Turns();
    const { forwarding } = options;
    const forwarded = forwarding === undefined ? undefined : new ForwardedCalls(forwarding, tracker, logger);
    const listener = await UnixListener.listen<ServedConnection>(socket, options, {
      open(client) {
        client.data = new ServedConnection(client, {
          open,
          memory: connections,
          turns,
          forwarded,
          isTrusted: () => isRootPeer(client),
        });
        connections.enter(client.data);
        const sent = firstBytes(client);
        if (sent !== undefined) client.data.receive(sent);
      },
      data: ({ data }, chunk) => data.receive(chunk),
      drain: ({ data }) => data.flush(),
      close({ data }) {
        connections.leave(data);
        data.closed();
      },
      error(client, error) {
        if (!isPeerGone(error))
          logger.error("a connection ends after a fault of our own", { error: error.stack ?? error.message });
        client.terminate();
      },
    });
    return new RpcServer(health, tracker, connections, listener);
  }

  /** Takes no more calls, waits for those in flight, then closes. Answers whether all of them ended in time. */
  async close(withinMs: number): Promise<boolean> {
    this.#listener.close();
    this.health.close();
    for (const connection of this.#connections) connection.leave();
    const ended = await this.#tracker.close(withinMs);
    await this.#empty();
    for (const connection of this.#connections) connection.terminate();
    clearInterval(this.#sweep);
    return ended;
  }

  async #empty(): Promise<void> {
    const untilMs = performance.now() + farewellMs;
    while (this.#connections.size > 0 && performance.now() < untilMs) await Bun.sleep(5);
  }
}

/** `package.Service` in `/package.Service/Name`. */
const serviceOf = (path: string): string => path.split("/")[1] ?? "";

/** Whether a write to a pipe failed because the reader has closed. */
const isPeerGone = (error: Error): boolean =>
  "code" in error && (error.code === "EPIPE" || error.code === "ECONNRESET" || error.code === "EOF");
