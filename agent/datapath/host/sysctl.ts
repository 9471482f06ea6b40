import { readFileSync, writeFileSync } from "node:fs";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { sysctlPath } from "../../netlink/mod.ts";

/** Of `/proc/sys`, in this process's network namespace. */
export function readSysctl(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // Without the file the kernel lacks the family; the write says so to whoever needs it.
    return undefined;
  }
}

/** @throws {CniError} 102 naming the file */
export function writeSysctl(path: string, value: string, action: string): void {
  try {
    writeFileSync(sysctlPath(path), value);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new CniError(
      CniCode.interfaceFailure,
      `Cannot ${action}: "${path}" is "${readSysctl(path) ?? "missing"}" and cannot be written (${code}), wanted "${value}"`,
      { cause },
    );
  }
}
