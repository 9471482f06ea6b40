import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { existsSync } from "node:fs";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { openDescriptors } from "../../../shared/os/descriptor.windows.ts";
import { administratorsOnlyInside, makeAdministratorsDirectory } from "../../../shared/os/directory.windows.ts";
import { invalidHandle, systemLibrary, wide } from "../../../shared/os/win32.windows.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { Step } from "./plan.ts";

const symbols = {
  CreateFileW: { args: ["ptr", "u32", "u32", "ptr", "u32", "u32", "ptr"], returns: FFIType.i64_fast },
  CloseHandle: { args: ["i64"], returns: "i32" },
  MoveFileExW: { args: ["ptr", "ptr", "u32"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

const openKernel = () => dlopen(systemLibrary("kernel32.dll"), symbols).symbols;

/** READ_CONTROL and WRITE_DAC; shared by all; opens directories too, and of a link the link itself. */
const access = 0x0002_0000 | 0x0004_0000;
const sharedByAll = 7;
const openExisting = 3;
const itself = 0x0200_0000 | 0x0020_0000;
const delayUntilReboot = 4;

/** As text and as identifiers. */
const administrators = ["SY", "BA", "S-1-5-18", "S-1-5-32-544"];

/** Has Windows remove a running executable at its next start. @returns whether Windows accepted that */
export function removeAtReboot(path: string): boolean {
  return openKernel().MoveFileExW(ptr(wide(path)), null, delayUntilReboot) !== 0;
}

/**
 * Plans to restrict the data directory to administrators: below ProgramData every user may create files by default, and
 * could put a configuration there first.
 * @param ownFile a file that this process created, whose owner is trusted as well
 * @throws {CniError} code 5 where the directory is there and belongs to somebody else
 */
export function planProtection(directory: string, ownFile: string): Step {
  const { ownerOf, accessOf, setAccess } = openDescriptors();
  const own = existsSync(ownFile) ? withOpen(ownFile, ownerOf) : "BA";
  const present = existsSync(directory);
  if (present) {
    const owner = withOpen(directory, ownerOf);
    if (![...administrators, own].includes(owner))
      throw cannotProtect(directory, `it belongs to "${owner}"`, "a directory of the administrators, or nothing");
    if (isProtected(withOpen(directory, accessOf), own))
      return { action: "keep", target: directory, detail: "for administrators only, already" };
  }
  const run = async (): Promise<undefined> => {
    if (!present) makeAdministratorsDirectory(directory);
    withOpen(directory, (handle) => setAccess(handle, administratorsOnlyInside));
    const is = withOpen(directory, accessOf);
    if (!isProtected(is, own))
      throw cannotProtect(directory, `its descriptor reads back as "${is}"`, `"${administratorsOnlyInside}"`);
  };
  return {
    action: present ? "replace" : "create",
    target: directory,
    detail: "directory, for administrators only",
    run,
  };
}

/**
 * Whether these two have full access and nobody else has any, inherited entries included. Wine shows the administrators
 * as its own user, and does not support protection from inheritance.
 */
function isProtected(sddl: string, own: string): boolean {
  const entries = sddl.replace(/^D:(?:P|AI|AR)*/, "").replaceAll(`;${own})`, ";BA)");
  const [system, others] = ["(A;OICI;FA;;;SY)", "(A;OICI;FA;;;BA)"];
  return [system + others, others + system].includes(entries);
}

function withOpen<T>(path: string, use: (handle: number) => T): T {
  const kernel = openKernel();
  const how = [access >>> 0, sharedByAll, null, openExisting, itself, null as Pointer | null] as const;
  const handle = kernel.CreateFileW(ptr(wide(path)), ...how);
  if (handle === invalidHandle)
    throw cannotProtect(path, `CreateFile answers error ${kernel.GetLastError()}`, "an administrator's console");
  try {
    return use(Number(handle));
  } catch (caught) {
    throw caught instanceof CniError ? caught : cannotProtect(path, reasonOf(caught));
  } finally {
    kernel.CloseHandle(handle);
  }
}

const cannotProtect = (path: string, is: string, wanted?: string): CniError =>
  new CniError(CniCode.io, `Cannot protect "${path}": ${is}${wanted === undefined ? "" : `, wanted ${wanted}`}`);
