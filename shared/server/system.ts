export type LockAttempt =
  | { readonly t: "ours"; release(): void }
  /** The id of the process that holds it, if known. */
  | { readonly t: "held"; readonly holder: number | undefined };

/** The place of one server's socket or pipe. */
export interface SocketPlace {
  /**
   * To be called first: creates the directory if one is needed.
   * @throws {CniError} code 5 where there can be no socket
   */
  prepare(): void;
  /**
   * Removes what a dead process left. Only for the holder of the socket's lock.
   * @throws {CniError} code 5 where the place is another program's
   */
  clear(): Promise<void>;
  /**
   * To be called in the turn of the event loop in which the socket was bound: restricts it to administrators, and
   * remembers it as this process's.
   * @throws {CniError} code 5 where that fails; then nobody must be served
   */
  settle(): void;
  /**
   * After `settle`: what has happened to it, such as `is gone`; `undefined` while it is this process's.
   * @param served how many calls have come by it so far
   */
  fate(served: number): string | undefined;
}

/** What a daemon needs of its operating system and Bun does not offer. */
export interface System {
  /**
   * A lock against a second process of ours; tries once. The kernel releases it when the process ends, however it ends.
   * @param path of a file, which is made where it is missing and stays, or on Windows the name of a pipe
   * @throws {Error} where the lock fails for another reason than that a process holds it
   */
  tryLock(path: string): LockAttempt;
  socketPlace(path: string): SocketPlace;
  /**
   * Tells the supervisor a state such as `READY=1` (sd_notify(3)); without a supervisor it does nothing.
   * @returns what went wrong, in words
   */
  notify(env: Readonly<Record<string, string | undefined>>, state: string): string | undefined;
}
