import { dlopen, type Pointer, ptr } from "bun:ffi";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { systemLibrary, wide } from "../../../shared/os/win32.windows.ts";
import {
  failureActions,
  type RestartPolicy,
  readConfig,
  readStatus,
  type ServiceView,
  serviceControl,
} from "./structures.ts";

/** Error codes of winerror.h that callers distinguish. */
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
  // The name stays reserved while a program holds a handle, such as an open services window.
  [serviceError.markedForDelete]:
    "it was removed while somebody still had it open, wanted that window closed, or a restart of the machine",
  [serviceError.requestTimeout]: "the process did not connect in time, wanted an executable that runs",
};

/** The error of a call of the service control manager. */
export class ServiceManagerError extends CniError {
  /** A Win32 error code. */
  readonly win32: number;

  /** @param action what was to be done: `start service "x"` */
  constructor(action: string, call: string, win32: number) {
    const is = sentences[win32] ?? `${call} answers error ${win32}`;
    super(CniCode.io, `Cannot ${action}: ${is}`, { details: `${call}, Win32 error ${win32}` });
    this.win32 = win32;
  }
}

/** A service of its own process, run as LocalSystem. */
export interface ServiceSettings {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  /** Program and arguments, quoted. */
  readonly commandLine: string;
  readonly restart: RestartPolicy;
}

/** The service control manager of this machine. Every call but `query` wants an administrator. */
export interface ServiceManager extends Disposable {
  /** `undefined` where there is no such service. */
  query(name: string): ServiceView | undefined;
  /**
   * Registers the service, or changes the one of that name, which need not be stopped for it.
   * @returns settings that this system does not know, by their names; everything else is set
   */
  register(settings: ServiceSettings): readonly string[];
  /** Asks for the start; one that runs is success. */
  start(name: string): void;
  /** Asks for the stop; one that does not run is success. Answers `false` if it accepts no control at this moment. */
  stop(name: string): boolean;
  /** The name is free once nobody has the service open; one that is not there is success. */
  remove(name: string): void;
}

const managerAccess = { connect: 1, create: 2 } as const;
const serviceAccess = { query: 0x5, all: 0xf01ff } as const;
/** Errors of a service that is starting or stopping, or whose process is ending. */
const deaf: readonly number[] = [
  serviceError.cannotAcceptControl,
  serviceError.requestTimeout,
  serviceError.brokenPipe,
  serviceError.noData,
];
const ownProcess = 0x10;
const automatic = 2;
/** The failure is logged and the boot goes on. */
const errorNormal = 1;
/** Levels of `ChangeServiceConfig2W`. */
const level = { description: 1, failureActions: 2, failureActionsAlways: 4 } as const;
/** The documented most that a service's configuration takes. */
const configBytes = 8 * 1024;
/** SERVICE_STATUS and SERVICE_STATUS_PROCESS. */
const statusBytes = 28;
const statusProcessBytes = 36;

/** @throws {ServiceManagerError} where it does not answer */
export const openServiceManager = (): ServiceManager => new ConnectedManager(openAdvapi32());

class ConnectedManager implements ServiceManager {
  readonly #api: Advapi32;
  #handle: Pointer | undefined;

  constructor(api: Advapi32) {
    this.#api = api;
    this.#handle = this.#connect(managerAccess.connect);
  }

  query(name: string): ServiceView | undefined {
    const action = `look at service "${name}"`;
    return this.#with(name, serviceAccess.query, action, (handle) => {
      const config = new Uint8Array(new ArrayBuffer(configBytes));
      const status = new Uint8Array(new ArrayBuffer(statusProcessBytes));
      const needed = new Uint32Array(new ArrayBuffer(4));
      if (this.#api.QueryServiceConfigW(handle, ptr(config), config.length, ptr(needed)) === 0)
        throw this.#refused(action, "QueryServiceConfigW");
      if (this.#api.QueryServiceStatusEx(handle, 0, ptr(status), status.length, ptr(needed)) === 0)
        throw this.#refused(action, "QueryServiceStatusEx");
      return { ...readConfig(config, Number(ptr(config))), ...readStatus(status) };
    });
  }

  register(settings: ServiceSettings): readonly string[] {
    const action = `change service "${settings.name}"`;
    const apply = (handle: Pointer): string[] => {
      this.#change(handle, settings);
      return this.#refine(handle, settings);
    };
    const missing = this.#with(settings.name, serviceAccess.all, action, apply);
    if (missing !== undefined) return missing;
    this.#create(settings);
    return this.#with(settings.name, serviceAccess.all, action, apply) ?? [];
  }

  start(name: string): void {
    const action = `start service "${name}"`;
    const found = this.#with(name, serviceAccess.all, action, (handle) => {
      if (this.#api.StartServiceW(handle, 0, null) !== 0) return true;
      const error = this.#refused(action, "StartServiceW");
      if (error.win32 !== serviceError.alreadyRunning) throw error;
      return true;
    });
    if (found === undefined) throw new ServiceManagerError(action, "OpenServiceW", serviceError.doesNotExist);
  }

  stop(name: string): boolean {
    const action = `stop service "${name}"`;
    const heard = this.#with(name, serviceAccess.all, action, (handle) => {
      const status = new Uint32Array(new ArrayBuffer(statusBytes));
      if (this.#api.ControlService(handle, serviceControl.stop, ptr(status)) !== 0) return true;
      const error = this.#refused(action, "ControlService");
      if (deaf.includes(error.win32)) return false;
      if (error.win32 !== serviceError.notActive) throw error;
      return true;
    });
    return heard ?? true;
  }

  remove(name: string): void {
    const action = `remove service "${name}"`;
    this.#with(name, serviceAccess.all, action, (handle) => {
      if (this.#api.DeleteService(handle) !== 0) return;
      const error = this.#refused(action, "DeleteService");
      if (error.win32 !== serviceError.markedForDelete) throw error;
    });
  }

  [Symbol.dispose](): void {
    if (this.#handle !== undefined) this.#api.CloseServiceHandle(this.#handle);
    this.#handle = undefined;
  }

  #connect(access: number): Pointer {
    const handle = this.#api.OpenSCManagerW(null, null, access);
    if (handle === null) throw this.#refused("reach the service control manager", "OpenSCManagerW");
    return handle as Pointer;
  }

  /** Runs `use` with the service; answers `undefined` where there is none. */
  #with<T>(name: string, access: number, action: string, use: (handle: Pointer) => T): T | undefined {
    const handle = this.#api.OpenServiceW(this.#handle ?? null, ptr(wide(name)), access);
    if (handle === null) {
      const error = this.#refused(action, "OpenServiceW");
      if (error.win32 === serviceError.doesNotExist) return undefined;
      throw error;
    }
    try {
      return use(handle as Pointer);
    } finally {
      this.#api.CloseServiceHandle(handle);
    }
  }

  #create({ name, displayName, commandLine }: ServiceSettings): void {
    const manager = this.#connect(managerAccess.connect | managerAccess.create);
    const strings = [wide(name), wide(displayName), wide(commandLine)] as const;
    const handle = this.#api.CreateServiceW(
      ...([manager, ptr(strings[0]), ptr(strings[1]), serviceAccess.query, ownProcess, automatic] as const),
      ...([errorNormal, ptr(strings[2]), null, null, null, null, null] as const),
    );
    const error = handle === null ? this.#refused(`register service "${name}"`, "CreateServiceW") : undefined;
    if (handle !== null) this.#api.CloseServiceHandle(handle);
    this.#api.CloseServiceHandle(manager);
    if (error !== undefined) throw error;
  }

  #change(handle: Pointer, { name, displayName, commandLine }: ServiceSettings): void {
    const [command, display] = [wide(commandLine), wide(displayName)];
    const done = this.#api.ChangeServiceConfigW(
      ...([handle, ownProcess, automatic, errorNormal, ptr(command)] as const),
      ...([null, null, null, null, null, ptr(display)] as const),
    );
    if (done === 0) throw this.#refused(`change service "${name}"`, "ChangeServiceConfigW");
  }

  /** Sets options that older versions of Windows lack; answers the names of those that this one lacks. */
  #refine(handle: Pointer, { name, description, restart }: ServiceSettings): string[] {
    const missing: string[] = [];
    const set = (what: string, which: number, structure: NodeJS.TypedArray): void => {
      if (this.#api.ChangeServiceConfig2W(handle, which, ptr(structure)) !== 0) return;
      const error = this.#refused(`set the ${what} of service "${name}"`, "ChangeServiceConfig2W");
      if (error.win32 !== serviceError.invalidLevel) throw error;
      missing.push(what);
    };
    // One BOOL, or one pointer.
    const yes = new Uint32Array(new ArrayBuffer(4)).fill(1);
    const pointer = new BigUint64Array(new ArrayBuffer(8));
    const text = wide(description);
    pointer[0] = BigInt(ptr(text));
    const { structure, actions } = failureActions(restart, (bytes) => Number(ptr(bytes)));
    const pointedTo: unknown[] = [text, actions];
    set("description", level.description, pointer);
    set("restart after a failure", level.failureActions, structure);
    set("restart after an orderly failure", level.failureActionsAlways, yes);
    pointedTo.length = 0; // Held until here.
    return missing;
  }

  #refused(action: string, call: string): ServiceManagerError {
    return new ServiceManagerError(action, call, this.#api.GetLastError());
  }
}

/** Arguments as winsvc.h has them; every handle and string is a pointer. */
const advapi32 = {
  OpenSCManagerW: { args: ["ptr", "ptr", "u32"], returns: "ptr" },
  OpenServiceW: { args: ["ptr", "ptr", "u32"], returns: "ptr" },
  CreateServiceW: {
    args: ["ptr", "ptr", "ptr", "u32", "u32", "u32", "u32", "ptr", "ptr", "ptr", "ptr", "ptr", "ptr"],
    returns: "ptr",
  },
  ChangeServiceConfigW: {
    args: ["ptr", "u32", "u32", "u32", "ptr", "ptr", "ptr", "ptr", "ptr", "ptr", "ptr"],
    returns: "i32",
  },
  ChangeServiceConfig2W: { args: ["ptr", "u32", "ptr"], returns: "i32" },
  QueryServiceConfigW: { args: ["ptr", "ptr", "u32", "ptr"], returns: "i32" },
  QueryServiceStatusEx: { args: ["ptr", "u32", "ptr", "u32", "ptr"], returns: "i32" },
  StartServiceW: { args: ["ptr", "u32", "ptr"], returns: "i32" },
  ControlService: { args: ["ptr", "u32", "ptr"], returns: "i32" },
  DeleteService: { args: ["ptr"], returns: "i32" },
  CloseServiceHandle: { args: ["ptr"], returns: "i32" },
} as const;

export type Advapi32 = ReturnType<typeof openAdvapi32>;

/** The functions of the service control manager, and the error of the last call. */
export const openAdvapi32 = () => ({
  ...dlopen(systemLibrary("advapi32.dll"), advapi32).symbols,
  ...dlopen(systemLibrary("kernel32.dll"), { GetLastError: { args: [], returns: "u32" } }).symbols,
});
