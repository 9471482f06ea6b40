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

/** How a service fares. */
export interface ServiceStatus {
  readonly state: ServiceStateCode;
  /** Of a service that has stopped; what is not 0 is a failure, after which the manager starts it again. */
  readonly exitStatus?: number;
  /** Rises while it starts or stops, so that nobody takes it for hung. */
  readonly checkPoint?: number;
  /** Within which the next check point, or the next state, comes. */
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
