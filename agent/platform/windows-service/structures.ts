/**
 * `SERVICE_STATUS` and the numbers in it, from winsvc.h
 * (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status).
 */
export const serviceState = { stopped: 1, startPending: 2, stopPending: 3, running: 4 } as const;
export type ServiceStateCode = (typeof serviceState)[keyof typeof serviceState];

/** What the service control manager may send to a handler. */
export const serviceControl = { stop: 1, interrogate: 4, shutdown: 5 } as const;

const ownProcess = 0x10;
const acceptsStop = 1;
const acceptsShutdown = 4;
/** ERROR_SERVICE_SPECIFIC_ERROR: the number that counts is the next field. */
const specificError = 1066;

/** The state of a service. */
export interface ServiceStatus {
  readonly state: ServiceStateCode;
  /** Of a service that has stopped; what is not 0 is a failure, after which the manager starts it again. */
  readonly exitStatus?: number;
  /** Increases while it starts or stops, so that the manager does not take it for hung. */
  readonly checkPoint?: number;
  /** The time within which the next check point or state comes. */
  readonly waitHintMs?: number;
}

/** The structure, seven DWORDs: type, state, accepted controls, exit code, exit code of its own, check point, wait hint. */
export function encodeServiceStatus(status: ServiceStatus): Uint32Array<ArrayBuffer> {
  const { state, exitStatus = 0, checkPoint = 0, waitHintMs = 0 } = status;
  const accepted = state === serviceState.running ? acceptsStop | acceptsShutdown : 0;
  const fields = [
    ownProcess,
    state,
    accepted,
    exitStatus === 0 ? 0 : specificError,
    exitStatus,
    checkPoint,
    waitHintMs,
  ];
  const words = new Uint32Array(new ArrayBuffer(4 * fields.length));
  words.set(fields);
  return words;
}

/** Structures of winsvc.h for x64, in and out; addresses are passed in, so that they can be read anywhere. */

/** When a service that has failed is started again. */
export interface RestartPolicy {
  /** Before the first restart, the second, …; the last counts for all later ones. */
  readonly delaysMs: readonly number[];
  /** Without a failure for this long, the first delay counts again. */
  readonly forgetAfterS: number;
}

/** A service as the manager describes it. */
export interface ServiceView {
  /** One of `serviceState`, or another number where it is paused. */
  readonly state: number;
  /** 0 where it does not run. */
  readonly pid: number;
  readonly commandLine: string;
  readonly displayName: string;
  /** 2: starts with the system. */
  readonly startType: number;
  /** Of the last run: a Win32 error, and where that is 1066, the service's own. */
  readonly win32ExitCode: number;
  readonly ownExitCode: number;
}

/** `SC_ACTION_RESTART`. */
const restart = 1;

/** `SERVICE_FAILURE_ACTIONSW`, and the array that it points to, which must be kept as long. */
export function failureActions(policy: RestartPolicy, addressOf: (bytes: Uint8Array<ArrayBuffer>) => number) {
  const actions = new Uint8Array(new ArrayBuffer(8 * policy.delaysMs.length));
  const action = new DataView(actions.buffer);
  for (const [i, delayMs] of policy.delaysMs.entries()) {
    action.setUint32(8 * i, restart, true);
    action.setUint32(8 * i + 4, delayMs, true);
  }
  const structure = new Uint8Array(new ArrayBuffer(40));
  const view = new DataView(structure.buffer);
  view.setUint32(0, policy.forgetAfterS, true);
  // Between them: no message, no command.
  view.setUint32(24, policy.delaysMs.length, true);
  view.setBigUint64(32, BigInt(addressOf(actions)), true);
  return { structure, actions };
}

/** `QUERY_SERVICE_CONFIGW`: its strings lie in the same buffer, which is at `address`. */
export function readConfig(
  bytes: Uint8Array<ArrayBuffer>,
  address: number,
): Pick<ServiceView, "commandLine" | "displayName" | "startType"> {
  const view = new DataView(bytes.buffer);
  const text = (at: number): string => {
    const start = Number(view.getBigUint64(at, true)) - address;
    // A null pointer, or none of this buffer.
    if (start < 0 || start >= bytes.length) return "";
    const units: number[] = [];
    for (let i = start; i + 1 < bytes.length; i += 2) {
      const unit = view.getUint16(i, true);
      if (unit === 0) break;
      units.push(unit);
    }
    return String.fromCharCode(...units);
  };
  return { startType: view.getUint32(4, true), commandLine: text(16), displayName: text(56) };
}

/** `SERVICE_STATUS_PROCESS`. */
export function readStatus(
  bytes: Uint8Array<ArrayBuffer>,
): Pick<ServiceView, "state" | "pid" | "win32ExitCode" | "ownExitCode"> {
  const view = new DataView(bytes.buffer);
  const word = (index: number): number => view.getUint32(4 * index, true);
  return { state: word(1), win32ExitCode: word(3), ownExitCode: word(4), pid: word(7) };
}

/**
 * A command line that a program of Windows takes apart into these arguments again, by the rules of its C library
 * (learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments). The program itself is always in quotes: an
 * unquoted path with a blank would let `C:\Program.exe` be run in its place.
 */
export function commandLine(program: string, args: readonly string[]): string {
  return [`"${program}"`, ...args.map(quoted)].join(" ");
}

function quoted(argument: string): string {
  if (argument !== "" && !/[\s"]/.test(argument)) return argument;
  // Backslashes mean themselves, but for those before a quote, the closing one included.
  return `"${argument.replace(/(\\*)"/g, '$1$1\\"').replace(/\\+$/, "$&$&")}"`;
}
