import { CniError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { isWindows } from "../os/platform.ts";
import { traceOf } from "../reason.ts";
import type { System } from "./system.ts";

/** A started server. */
export interface Running {
  /** Resolves with a sentence when it cannot continue. */
  readonly lost: Promise<string>;
  /**
   * Resolves when it has served so many calls that many more are to be expected; `undefined` where nobody waits for what
   * it does first. To be said by each, since one that forgets it keeps a node's first pods waiting.
   */
  readonly settled: Promise<void> | undefined;
  stop(): Promise<void>;
}

/** A service manager that the process itself reports to, such as Windows'. */
export interface Supervisor {
  /** Resolves with a text for the log when it asks the process to stop. */
  readonly stopRequested: Promise<string>;
  /** Reports that the daemon serves. */
  ready(): void;
  /** Reports that the daemon finishes its calls and stops. */
  stopping(): void;
}

export interface DaemonContext {
  /** For messages: `the agent`. */
  readonly who: string;
  readonly logger: Logger;
  readonly system: System;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly supervisor?: Supervisor | undefined;
  /** Resolves with a text for the log when the daemon is to exit with status 0 in order to be restarted. */
  readonly restartWanted?: Promise<string> | undefined;
}

/** How many times later than usual the engine compiles. */
const lateJit = 500;
const usualJit = 1;

/**
 * Starts, tells systemd or the supervisor, and stops on a signal, at the supervisor's request, or when the server
 * cannot continue.
 * @returns exit status: 0 stopped as asked, 1 failed
 */
export async function runDaemon(context: DaemonContext, start: () => Promise<Running>): Promise<number> {
  const { who, logger, supervisor, restartWanted } = context;
  // An unhandled error leaves the process in an unknown state, so it exits and the supervisor restarts it.
  const onFault = (caught: unknown): void => {
    logger.error(`${who} ends after a fault of its own`, { error: traceOf(caught) });
    process.exit(1);
  };
  process.on("uncaughtException", onFault);
  process.on("unhandledRejection", onFault);
  // Listened to from the beginning, so that a signal during the start is not lost.
  const asked = [supervisor?.stopRequested, restartWanted].filter((word) => word !== undefined);
  const signalled = Promise.race([stopSignal(), ...asked]);
  try {
    const running = await start();
    // What is compiled beside a node's first pods keeps these waiting, as it does a plugin (`jitPolicy` in
    // build/bundle.ts). It pays for an agent that goes on: some hundred pods later an ADD takes a fifth less. What
    // computes for long is compiled all the same.
    Bun.unsafe.setJITPolicy(running.settled === undefined ? usualJit : lateJit);
    void running.settled?.then(() => Bun.unsafe.setJITPolicy(usualJit));
    tell(context, "READY=1");
    supervisor?.ready();
    const lost = await Promise.race([signalled.then((signal) => void logger.info("signal", { signal })), running.lost]);
    if (lost !== undefined) logger.error(lost);
    tell(context, "STOPPING=1");
    supervisor?.stopping();
    await running.stop();
    return lost === undefined ? 0 : 1;
  } catch (caught) {
    const error = CniError.from(caught, `run ${who}`);
    logger.error(error.message, { code: error.code, details: error.details });
    return 1;
  } finally {
    process.off("uncaughtException", onFault);
    process.off("unhandledRejection", onFault);
  }
}

/**
 * On Windows these are Ctrl+C, Ctrl+Break and the end of the console; a hangup on Linux ends the process by default.
 */
const stopSignals = isWindows ? (["SIGINT", "SIGBREAK", "SIGHUP"] as const) : (["SIGTERM", "SIGINT"] as const);

function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of stopSignals) process.once(signal, () => resolve(signal));
  });
}

function tell({ env, system, logger }: DaemonContext, state: string): void {
  const problem = system.notify(env, state);
  if (problem !== undefined) logger.warn(problem);
}
