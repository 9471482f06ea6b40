import type { Logger } from "../log.ts";
import { CallTracker } from "./call-tracker.ts";
import type { Rpc } from "./handlers.ts";
import { InstanceLock } from "./instance-lock.ts";
import type { Libc } from "./libc.linux.ts";
import { RpcServer } from "./rpc-server.ts";
import { clearStaleSocket, makeSocketDirectory, socketIdentity } from "./socket-place.ts";

/**
 * A socket that belongs to one process of ours: from `claim` on no other one takes it, from `listen` on calls are
 * served there, and what becomes of its file is watched.
 */
export class SocketServer implements AsyncDisposable {
  readonly path: string;
  readonly #lock: InstanceLock;
  readonly #tracker = new CallTracker();
  readonly #lost = Promise.withResolvers<string>();
  #server: RpcServer | undefined;
  #watch: ReturnType<typeof setInterval> | undefined;

  private constructor(path: string, lock: InstanceLock) {
    this.path = path;
    this.#lock = lock;
  }

  /**
   * Makes the socket's directory where it is missing, and takes the lock beside the socket.
   * @param who for messages: `the agent`
   * @throws {CniError} code 5 naming what is in the way, such as the pid of the holder
   */
  static claim(path: string, who: string, libc: Libc): SocketServer {
    makeSocketDirectory(path);
    return new SocketServer(path, InstanceLock.take(`${path}.lock`, who, `socket "${path}"`, libc));
  }

  /**
   * Removes what a dead process left, and serves. Not yet healthy: that is for the caller to say.
   * @throws {CniError} code 5 where the path is another program's
   */
  async listen(services: readonly (readonly Rpc[])[], watchIntervalMs: number, logger: Logger): Promise<void> {
    await clearStaleSocket(this.path);
    this.#server = await RpcServer.listen(this.path, services, this.#tracker, logger);
    const own = socketIdentity(this.path);
    this.#watch = setInterval(() => {
      const now = socketIdentity(this.path);
      if (now === own) return;
      clearInterval(this.#watch);
      const is = now === undefined ? "is gone" : "is another program's";
      this.#lost.resolve(
        `Cannot be reached any more: the socket "${this.path}" ${is}, wanted the one that this process made`,
      );
    }, watchIntervalMs);
  }

  /**
   * Resolves, with a sentence, when the socket's file has gone or is another's: nobody can reach this process any
   * more, and only a new start makes a socket that is its own.
   */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  get callsInFlight(): number {
    return this.#tracker.inFlight;
  }

  /** What the health check answers. */
  set serving(serving: boolean) {
    if (this.#server !== undefined) this.#server.health.serving = serving;
  }

  /**
   * Takes no more calls, waits for those in flight, removes the socket. The lock stays until it is disposed of.
   * @returns whether all calls ended in time
   */
  async close(withinMs: number): Promise<boolean> {
    clearInterval(this.#watch);
    const ended = (await this.#server?.close(withinMs)) ?? true;
    this.#server = undefined;
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0);
    this.#lock[Symbol.dispose]();
  }
}
