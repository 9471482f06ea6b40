import { brief, printable, printableLines } from "./printable.ts";
import { reasonOf } from "./reason.ts";

/** The longest message or details of an error: more than any sentence needs, and too little to fill a log. */
export const maxErrorChars = 4096;

/**
 * The one error class of Pipette and its closed set of codes.
 *
 * Codes 1 to 99 belong to the CNI specification (1.1.0, section "Error"); ours start at 100 and
 * follow the numbers of the reference system's `Cni` service, so that both sides mean the same.
 */
export const CniCode = {
  incompatibleVersion: 1,
  unsupportedField: 2,
  unknownContainer: 3,
  invalidEnvironment: 4,
  io: 5,
  decode: 6,
  invalidConfig: 7,
  tryAgainLater: 11,
  notAvailable: 50,
  limitedConnectivity: 51,
  internal: 100,
  ipamFailure: 101,
  interfaceFailure: 102,
  checkFailure: 103,
  /** A DEL that came before the last ADD of the same sandbox. */
  overtaken: 104,
  unknownRpc: 201,
  incompatibleApi: 202,
} as const;

export type CniCode = (typeof CniCode)[keyof typeof CniCode];

export interface ErrorOptions {
  /** More about the cause: numbers, holders, what to do. Becomes `details` on stdout. */
  readonly details?: string | undefined;
  readonly cause?: unknown;
}

/**
 * A failure that the caller of a verb sees.
 *
 * `message` follows one grammar: `Cannot <action>: <what is>, wanted <what should be>`, in sentence case without a full
 * stop, values in double quotes. A message of a DEL that must be retried never contains the words "not found": the
 * runtime takes them for success.
 *
 * Quoted text from files, runtimes or other plugins is escaped and shortened, so that a message is safe for terminals
 * and logs.
 */
export class CniError extends Error {
  override readonly name = "CniError";
  /** One of `CniCode`, or the code of a delegated plugin or of another implementation's agent. */
  readonly code: number;
  readonly details: string;

  constructor(code: number, message: string, options: ErrorOptions = {}) {
    const cause = options.cause === undefined ? undefined : { cause: options.cause };
    super(brief(printable(message), maxErrorChars), cause);
    this.code = code;
    this.details = brief(printableLines(options.details ?? ""), maxErrorChars);
  }

  /** The only way in for what was caught: a `CniError` stays as it is, anything else becomes an internal one. */
  static from(caught: unknown, action = "finish the call"): CniError {
    if (caught instanceof CniError) return caught;
    const text = reasonOf(caught);
    const stack = caught instanceof Error ? (caught.stack ?? "") : "";
    return new CniError(CniCode.internal, `Cannot ${action}: ${text}`, { cause: caught, details: stack });
  }
}
