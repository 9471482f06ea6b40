import type { LockFile } from "../../shared/os/file-lock.ts";

/**
 * Where SQLite keeps its locks in the file of a database (sqlite.org, os.h, "PENDING_BYTE"): every process that has it
 * open in WAL mode locks some of them.
 */
export const lockBytes = { first: 0x4000_0000, length: 512 } as const;

/** An open database file whose lock bytes can be locked against SQLite, in this system's way. */
export interface DatabaseFile extends LockFile {
  readonly fd: number;
  /** Which process has the database open; `undefined` where the system does not tell. */
  holder(): number | undefined;
}
