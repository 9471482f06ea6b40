import { CniCode, CniError } from "../../../shared/errors.ts";

/** Of winerror.h, what a caller tells apart. */
export const serviceError = {
  accessDenied: 5,
  brokenPipe: 109,
  invalidLevel: 124,
  noData: 232,
  requestTimeout: 1053,
  alreadyRunning: 1056,
  doesNotExist: 1060,
  cannotAcceptControl: 1061,
  notActive: 1062,
  markedForDelete: 1072,
} as const;

const sentences: Readonly<Record<number, string>> = {
  [serviceError.accessDenied]: "access is denied, wanted an administrator's console",
  // The name stays taken while anybody holds a handle, such as an open services window.
  [serviceError.markedForDelete]:
    "it was removed while somebody still had it open, wanted that window closed, or a restart of the machine",
  [serviceError.requestTimeout]: "the process did not connect in time, wanted an executable that runs",
};

/** What a call of the service control manager failed with. */
export class ServiceManagerError extends CniError {
  /** A Win32 error code. */
  readonly win32: number;

  /** @param action what was to be done: `start service "x"` */
  constructor(action: string, call: string, win32: number) {
    const is = sentences[win32] ?? `${call} answers error ${win32}, wanted success`;
    super(CniCode.io, `Cannot ${action}: ${is}`, { details: `${call}, Win32 error ${win32}` });
    this.win32 = win32;
  }
}
