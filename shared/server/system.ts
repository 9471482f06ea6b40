import { isWindows } from "../os/platform.ts";

export type LockAttempt =
  | { readonly t: "ours"; release(): void }
  /** By a process of this id, where that can be told. */
  | { readonly t: "held"; readonly holder: number | undefined };

/** The place of one server's socket or pipe. */
export interface SocketPlace {
  /**
   * Before anything else: makes the directory where there has to be one.
   * @throws {CniError} code 5 where there can be no socket
   */
  prepare(): void;
  /**
   * Removes what a dead process left. Only for the holder of the socket's lock.
   * @throws {CniError} code 5 where the place is another program's
   */
  clear(): Promise<void>;
  /**
   * In the turn of the event loop in which this process has bound the socket: sees to it that nobody but the
   * administrators of the system can use it, and takes note of it as this process's.
   * @throws {CniError} code 5 where that cannot be had; then nobody must be served
   */
  settle(): void;
  /**
   * After `settle`: what has become of it, such as `is gone`; `undefined` while it is this process's.
   * @param served how many calls have come by it so far
   */
  fate(served: number): string | undefined;
}

/** What a daemon needs of its operating system, and Bun has nothing for. */
export interface System {
  /**
   * A lock that keeps a second process of ours away, without waiting. It is the kernel's, and dies with the process,
   * however that ends.
   * @param path of a file, which is made where it is missing and stays, or on Windows the name of a pipe
   * @throws {Error} where the lock can neither be had nor be another's
   */
  tryLock(path: string): LockAttempt;
  socketPlace(path: string): SocketPlace;
  /**
   * Tells the supervisor a state such as `READY=1` (sd_notify(3)); without one that wants to hear it nothing happens.
   * @returns what went wrong, in words
   */
  notify(env: Readonly<Record<string, string | undefined>>, state: string): string | undefined;
}

/** The system that this process runs on. */
export async function openSystem(): Promise<System> {
  return isWindows
    ? (await import("./system.windows.ts")).openWindowsSystem()
    : (await import("./system.linux.ts")).openLinuxSystem();
}
