import { isObject, show } from "../../../shared/schema/json-fields.ts";

/** What went wrong, in words that code can tell apart. A server's own words that are not here become `refused`. */
export const OvsdbCode = {
  /** No connection could be had in time; nothing was sent. */
  unreachable: "unreachable",
  /** No answer came in time. */
  late: "late",
  /** The connection ended before the answer. */
  disconnected: "disconnected",
  /** This client has been closed. */
  closed: "closed",
  /** What was asked for cannot be put into a request. */
  invalid: "invalid",
  /** The other end does not speak as RFC 7047 says. */
  malformed: "malformed",
  /** A row did not become what was waited for, as the local view shows it. */
  notSeen: "not seen",
  /** Any other error that the server answers. */
  refused: "refused",
  // RFC 7047, section 3.1 and the errors of section 5.2, each in the server's words.
  timedOut: "timed out",
  constraintViolation: "constraint violation",
  referentialIntegrityViolation: "referential integrity violation",
  resourcesExhausted: "resources exhausted",
  ioError: "I/O error",
  aborted: "aborted",
  canceled: "canceled",
  duplicateUuidName: "duplicate uuid-name",
  domainError: "domain error",
  rangeError: "range error",
  syntaxError: "syntax error",
  unknownDatabase: "unknown database",
  unknownMethod: "unknown method",
  unknownColumn: "unknown column",
  notSupported: "not supported",
  notAllowed: "not allowed",
} as const;

export type OvsdbCode = (typeof OvsdbCode)[keyof typeof OvsdbCode];

/** The codes that stand for a server's own words. */
const serverWords: ReadonlySet<string> = new Set<string>([
  OvsdbCode.timedOut,
  OvsdbCode.constraintViolation,
  OvsdbCode.referentialIntegrityViolation,
  OvsdbCode.resourcesExhausted,
  OvsdbCode.ioError,
  OvsdbCode.aborted,
  OvsdbCode.canceled,
  OvsdbCode.duplicateUuidName,
  OvsdbCode.domainError,
  OvsdbCode.rangeError,
  OvsdbCode.syntaxError,
  OvsdbCode.unknownDatabase,
  OvsdbCode.unknownMethod,
  OvsdbCode.unknownColumn,
  OvsdbCode.notSupported,
  OvsdbCode.notAllowed,
]);

/** The code for the `error` member of an answer. */
const codeOf = (word: string): OvsdbCode => (serverWords.has(word) ? (word as OvsdbCode) : OvsdbCode.refused);

/** Codes after which the outcome is unknown, or the database has the change and the expected effect has not come. */
const uncertain: ReadonlySet<OvsdbCode> = new Set<OvsdbCode>([
  OvsdbCode.late,
  OvsdbCode.disconnected,
  OvsdbCode.malformed,
  OvsdbCode.notSeen,
  OvsdbCode.closed,
]);

export interface OvsdbErrorOptions {
  /** Of a transaction: which operation failed, from 0; its count for the commit itself. */
  readonly operation?: number | undefined;
  readonly cause?: unknown;
}

/** A failure of the database's client. `message` reads `Cannot <action>: <what is>, wanted <what should be>`. */
export class OvsdbError extends Error {
  override readonly name = "OvsdbError";
  readonly code: OvsdbCode;
  /** Of a transaction that the server refused: which operation it was, from 0; their count where it was the commit. */
  readonly operation: number | undefined;

  constructor(code: OvsdbCode, message: string, options: OvsdbErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.operation = options.operation;
  }

  /** Whether a transaction that ended so may have been carried out all the same, by the database at least. */
  get mayHaveHappened(): boolean {
    return uncertain.has(this.code);
  }
}

/** An `<error>` (RFC 7047, section 3.1) of the server, in a result or in place of one. */
export function serverError(json: unknown): { readonly code: OvsdbCode; readonly text: string } {
  const word = isObject(json) ? json["error"] : json;
  const details = isObject(json) ? json["details"] : undefined;
  if (typeof word !== "string") return { code: OvsdbCode.refused, text: show(json) };
  const more = typeof details === "string" && details !== "" ? ` (${details.slice(0, maxDetailChars)})` : "";
  return { code: codeOf(word), text: `"${word.slice(0, maxDetailChars)}"${more}` };
}

/** How much of the server's details is used; they quote the refused value, which may be long. */
const maxDetailChars = 500;
