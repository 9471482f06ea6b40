import { CniCode, CniError } from "../../shared/errors.ts";

/** How long a writer waits for another process's SQLite transaction, which lasts about a millisecond. */
export const storeLockMs = 5_000;

/** What SQLite's primary result codes (sqlite.org/rescode.html) mean for someone who runs a node. */
interface Meaning {
  readonly code: CniCode;
  readonly is: string;
  readonly wanted?: string;
  readonly details?: string;
}

const corrupt = 11;
const notADatabase = 26;

const lockedBy: Meaning = {
  code: CniCode.tryAgainLater,
  is: `other processes held its lock for ${storeLockMs} ms`,
  details:
    "A transaction lasts about a millisecond; look for a process that is stopped, or a backup that holds the file",
};

const refused: Meaning = {
  code: CniCode.ipamFailure,
  is: "the system does not permit it",
  wanted: "a directory and files that this process may read and write",
};

const damaged: Meaning = {
  code: CniCode.ipamFailure,
  is: "its content is damaged",
  wanted: "an intact SQLite database",
  details:
    "No address is given out from it, because one in use could be given out twice. The agent at its start, and pipette-ipam without an agent, set it aside and keep what can be read",
};

const meanings: ReadonlyMap<number, Meaning> = new Map([
  // PERM, AUTH: an operating system or a security module that says no.
  [3, refused],
  [23, refused],
  // BUSY and LOCKED, and PROTOCOL: the same while the log's index is being set up.
  [5, lockedBy],
  [6, lockedBy],
  [15, lockedBy],
  [8, { code: CniCode.ipamFailure, is: "it is read-only", wanted: "a file and a file system that can be written" }],
  [
    10,
    {
      code: CniCode.ipamFailure,
      is: "reading or writing it failed",
      wanted: "a working disk",
      details: "The kernel's log tells more",
    },
  ],
  [corrupt, damaged],
  [notADatabase, damaged],
  [
    13,
    {
      code: CniCode.ipamFailure,
      is: "the disk is full",
      wanted: "some free kilobytes",
      details: "Nothing was changed",
    },
  ],
  [
    14,
    {
      code: CniCode.ipamFailure,
      is: "it cannot be opened",
      wanted: "a directory that exists and files that this process may read and write",
      details: "Neither it nor the files beside it whose names begin alike may be symbolic links or directories",
    },
  ],
]);

/** The primary result code of an error of `node:sqlite`; `undefined` for any other error. */
export function sqliteCode(caught: unknown): number | undefined {
  const code = caught instanceof Error ? (caught as Error & { errcode?: unknown }).errcode : undefined;
  // The upper bytes distinguish variants such as BUSY_RECOVERY.
  return typeof code === "number" ? code & 0xff : undefined;
}

/** Whether an error of SQLite, or one that was made from it, reports damage. */
export function isDamage(caught: unknown): boolean {
  for (let error = caught; error instanceof Error; error = error.cause) {
    const code = sqliteCode(error);
    if (code !== undefined) return code === corrupt || code === notADatabase;
  }
  return false;
}

/** The same error for damage that SQLite does not report, because it takes the file for a new database. */
export function damageError(path: string, text: string): unknown {
  return storeError(Object.assign(new Error(text), { errcode: corrupt }), path);
}

/** Maps an error of a use of the database at `path` to ours; errors that are not SQLite's stay as they are. */
export function storeError(caught: unknown, path: string): unknown {
  const code = sqliteCode(caught);
  if (code === undefined) return caught;
  const text = (caught as Error).message;
  const meaning = meanings.get(code);
  // All other codes are our own mistakes, such as a statement that does not fit the schema.
  if (meaning === undefined) {
    return new CniError(CniCode.internal, `Cannot use the lease database "${path}": ${text}`, {
      cause: caught,
    });
  }
  return new CniError(
    meaning.code,
    `Cannot use the lease database "${path}": ${meaning.is} (${text})${meaning.wanted === undefined ? "" : `, wanted ${meaning.wanted}`}`,
    { details: meaning.details, cause: caught },
  );
}
