import { CniError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { isWindows } from "../os/platform.ts";
import { traceOf } from "../reason.ts";
import type { System } from "./system.ts";

/** What has been started, and serves. */
export interface Running {
  /** Resolves, with a sentence, when it cannot go on. */
  readonly lost: Promise<string>;
  stop(): Promise<void>;
}

/** A service manager that is spoken to from within, as Windows' is. */
export interface Supervisor {
  /** Resolves, with a word for the log, when it asks for the end. */
  readonly stopRequested: Promise<string>;
  /** The daemon serves. */
  ready(): void;
  /** It finishes what is in flight. */
  stopping(): void;
}

export interface DaemonContext {
  /** For messages: `the agent`. */
  readonly who: string;
  readonly logger: Logger;
  readonly system: System;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly supervisor?: Supervisor | undefined;
  /** Resolves, with a word for the log, when it is to end well so that whoever has started it starts it anew. */
  readonly restartWanted?: Promise<string> | undefined;
}

/**
 * Starts, tells systemd or the supervisor, and stops on a signal that asks for it, the supervisor's word, or when what runs
 * cannot go on.
 * @returns exit status: 0 stopped as asked, 1 failed
 */
export async function runDaemon(context: DaemonContext, start: () => Promise<Running>): Promise<number> {
  const { who, logger, supervisor, restartWanted } = context;
  // Whatever nobody waited for leaves a state that nobody knows: the supervisor starts it anew.
  const onFault = (caught: unknown): void => {
    logger.error(`${who} ends after a fault of its own`, { error: traceOf(caught) });
    process.exit(1);
  };
  process.on("uncaughtException", onFault);
  process.on("unhandledRejection", onFault);
  // Waited for from the beginning, so that a signal during the start is not lost.
  const asked = [supervisor?.stopRequested, restartWanted].filter((word) => word !== undefined);
  const signalled = Promise.race([stopSignal(), ...asked]);
  try {
    const running = await start();
    // Executables begin with a JIT for plugins, which are over before compiled code pays (`jitPolicy` in build/bundle.ts).
    // Still later than usual: what is compiled while a node's pods all come at once keeps them waiting.
    Bun.unsafe.setJITPolicy(4);
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

/** On Windows these are Ctrl+C, Ctrl+Break and the end of the console; a hangup on Linux ends the process as ever. */
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
