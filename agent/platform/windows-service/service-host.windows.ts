import { dlopen, JSCallback, type Pointer, ptr } from "bun:ffi";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { systemLibrary, wide } from "../../../shared/os/win32.windows.ts";
import type { Supervisor } from "../../../shared/server/daemon.ts";
import { encodeServiceStatus, type ServiceStatus, serviceControl, serviceState } from "./structures.ts";

/** A starting or stopping service has to report progress within this time; it does so three times as often. */
const waitHintMs = 15_000;

/** This process as a Windows service: its reports to the service control manager, and the manager's controls. */
export interface ServiceHost extends Supervisor {
  /** The last report: the manager counts the service as stopped, as failed if the exit status is not 0. */
  stopped(exitStatus: number): void;
}

const kernel32 = {
  CreateThread: { args: ["ptr", "usize", "ptr", "ptr", "u32", "ptr"], returns: "ptr" },
  GetModuleHandleW: { args: ["ptr"], returns: "ptr" },
  GetProcAddress: { args: ["ptr", "ptr"], returns: "ptr" },
  WaitForSingleObject: { args: ["ptr", "u32"], returns: "u32" },
} as const;

const advapi32 = {
  RegisterServiceCtrlHandlerExW: { args: ["ptr", "ptr", "ptr"], returns: "ptr" },
  SetServiceStatus: { args: ["ptr", "ptr"], returns: "i32" },
} as const;

/** `WaitForSingleObject`: the thread has ended. */
const ended = 0;
const pollMs = 50;
/** Memory that native code refers to, kept for the life of the process. */
const keptForNative: unknown[] = [];

/**
 * Connects this process with the service control manager and answers once that has begun to start the service.
 *
 * `StartServiceCtrlDispatcherW` occupies a thread until the service has stopped; it has the signature of a thread's
 * start routine, so Windows runs it on a thread of its own and no JavaScript waits in it. Its two callbacks come on
 * foreign threads: Bun queues them for this thread and answers for us, 0 that is NO_ERROR, which is what a handler
 * answers for every control that this service accepts, and for an interrogation.
 * @param name of the service; the manager does not compare it for a process with one service
 * @throws {CniError} code 5 where the manager has not started this process
 */
export async function enterService(name: string): Promise<ServiceHost> {
  const { CreateThread, GetModuleHandleW, GetProcAddress, WaitForSingleObject } = dlopen(
    systemLibrary("kernel32.dll"),
    kernel32,
  ).symbols;
  const service = dlopen(systemLibrary("advapi32.dll"), advapi32).symbols;
  const asked = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const onControl = (control: number): void => {
    if (control === serviceControl.stop) asked.resolve("service stop");
    if (control === serviceControl.shutdown) asked.resolve("system shutdown");
  };
  const handler = new JSCallback(onControl, { args: ["u32", "u32", "ptr", "ptr"], returns: "u32", threadsafe: true });
  const main = new JSCallback(() => begun.resolve(), { args: ["u32", "ptr"], returns: "void", threadsafe: true });
  const wideName = wide(name);
  // SERVICE_TABLE_ENTRYW: name and main function; a second, empty one ends the table.
  const table = new BigUint64Array(new ArrayBuffer(4 * 8));
  table.set([BigInt(ptr(wideName)), BigInt(main.ptr ?? 0), 0n, 0n]);
  keptForNative.push(handler, main, wideName, table);

  const module = GetModuleHandleW(ptr(wide("advapi32.dll")));
  const dispatcher = GetProcAddress(module, ptr(new TextEncoder().encode("StartServiceCtrlDispatcherW\0")));
  const thread = CreateThread(null, 0, dispatcher, ptr(table), 0, null);
  if (thread === null) throw notStarted("there is no thread for its dispatcher");
  const watch = setInterval(() => {
    if (WaitForSingleObject(thread, 0) === ended) begun.reject(notStarted("nothing answers at the manager's end"));
  }, pollMs);
  await begun.promise.finally(() => clearInterval(watch));

  const handle = service.RegisterServiceCtrlHandlerExW(ptr(wideName), handler.ptr as Pointer, null);
  if (handle === null) throw notStarted("it takes no handler");
  return new ConnectedHost(asked.promise, (status) => {
    service.SetServiceStatus(handle, ptr(encodeServiceStatus(status)));
  });
}

class ConnectedHost implements ServiceHost {
  readonly stopRequested: Promise<string>;
  readonly #say: (status: ServiceStatus) => void;
  /** This timer also keeps the process alive. */
  #pending: ReturnType<typeof setInterval> | undefined;

  constructor(stopRequested: Promise<string>, say: (status: ServiceStatus) => void) {
    this.stopRequested = stopRequested;
    this.#say = say;
    this.#goOnSaying(serviceState.startPending);
  }

  ready(): void {
    clearInterval(this.#pending);
    this.#say({ state: serviceState.running });
  }

  stopping(): void {
    this.#goOnSaying(serviceState.stopPending);
  }

  stopped(exitStatus: number): void {
    clearInterval(this.#pending);
    this.#say({ state: serviceState.stopped, exitStatus });
  }

  #goOnSaying(state: typeof serviceState.startPending | typeof serviceState.stopPending): void {
    clearInterval(this.#pending);
    let checkPoint = 0;
    const say = (): void => this.#say({ state, checkPoint: ++checkPoint, waitHintMs });
    say();
    this.#pending = setInterval(say, waitHintMs / 3);
  }
}

const notStarted = (is: string): CniError =>
  new CniError(
    CniCode.io,
    `Cannot run as a service: ${is}, wanted to be started by the service control manager ("sc start", or the service's own start); without --service the agent runs in a console`,
  );
