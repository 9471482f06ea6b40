import type { Logger } from "../log.ts";
import { CallTracker } from "./call-tracker.ts";
import type { Forwarding } from "./forward/forwarded-calls.ts";
import type { Rpc } from "./handlers.ts";
import { InstanceLock } from "./instance-lock.ts";
import { RpcServer } from "./rpc-server.ts";
import type { SocketPlace, System } from "./system.ts";

/**
 * A socket, or a Windows pipe, that belongs to one process of ours: `claim` keeps other processes away, `listen` serves
 * calls, and afterwards the socket is watched.
 */
export class SocketServer implements AsyncDisposable {
  readonly path: string;
  readonly #place: SocketPlace;
  readonly #lock: InstanceLock;
  readonly #tracker = new CallTracker();
  readonly #lost = Promise.withResolvers<string>();
  #server: RpcServer | undefined;
  #watch: ReturnType<typeof setInterval> | undefined;

  private constructor(path: string, place: SocketPlace, lock: InstanceLock) {
    this.path = path;
    this.#place = place;
    this.#lock = lock;
  }

  /**
   * Makes the socket's directory where it is missing, and takes the socket's lock: on Linux a file beside it.
   * @param who for messages: `the agent`
   * @throws {CniError} code 5 naming what is in the way, such as the pid of the holder
   */
  static claim(path: string, who: string, system: System): SocketServer {
    const place = system.socketPlace(path);
    place.prepare();
    return new SocketServer(path, place, InstanceLock.take(`${path}.lock`, who, `socket "${path}"`, system));
  }

  /**
   * Removes what a dead process left, and serves, administrators only. The health is initially not serving; the caller
   * sets it.
   * @param forwarding answers calls that a plugin's process hands over; absent: nothing does
   * @throws {CniError} code 5 where the path is another program's, or cannot be kept from others
   */
  async listen(
    services: readonly (readonly Rpc[])[],
    watchIntervalMs: number,
    logger: Logger,
    forwarding?: Forwarding,
  ): Promise<void> {
    await this.#place.clear();
    this.#server = await RpcServer.listen(this.path, services, this.#tracker, logger, { forwarding });
    try {
      this.#place.settle();
    } catch (caught) {
      await this.close(0);
      throw caught;
    }
    this.#watch = setInterval(() => {
      const is = this.#place.fate(this.#tracker.begun);
      if (is === undefined) return;
      clearInterval(this.#watch);
      this.#lost.resolve(
        `Cannot be reached any more: the socket "${this.path}" ${is}, wanted the one that this process made`,
      );
    }, watchIntervalMs);
  }

  /**
   * Resolves with a sentence when the socket has gone or was replaced: then nobody can reach this process, and only a
   * restart creates its socket again.
   */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** As that of `CallTracker`. */
  get settled(): Promise<void> {
    return this.#tracker.settled;
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
