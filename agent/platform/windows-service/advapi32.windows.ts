import { dlopen } from "bun:ffi";
import { systemLibrary } from "../../../shared/os/win32.windows.ts";

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
