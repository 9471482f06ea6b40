import { CniCode, CniError } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { parseJson } from "../schema/json.ts";
import { isObject } from "../schema/json-fields.ts";

/** How much of the server's reason is quoted. */
const maxReasonChars = 300;
/** The longest wait, whatever a server asks for: a client that waits longer looks dead. */
const longestRetryAfterMs = 60_000;

/** What an `ApiError` is made of. */
export interface ApiFault {
  /** `list nodes`, `watch pods in namespace "x"`. */
  readonly action: string;
  /** `<what is>, wanted <what should be>`. */
  readonly is: string;
  /** Of the answer, or of the `Status` within a watch; absent where no answer came. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** A refusal of the API server, or the lack of a usable answer. It contains no token and no key. */
export class ApiError extends CniError {
  /** The message without the action, for callers that describe it themselves. */
  readonly is: string;
  readonly status: number | undefined;
  /** How long the server asks not to be asked again. */
  readonly retryAfterMs: number | undefined;

  constructor({ action, is, status, retryAfterMs, cause }: ApiFault) {
    super(CniCode.tryAgainLater, `Cannot ${action}: ${is}`, { cause });
    this.is = is;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** Makes an `ApiError` of anything that was caught; an `ApiError` stays as it is. */
  static override from(caught: unknown, action = "ask the API server"): ApiError {
    if (caught instanceof ApiError) return caught;
    return new ApiError({ action, is: reasonOf(caught), cause: caught });
  }
}

/** The version or the page that was asked for is too old: only a new list helps (HTTP 410, `Expired`). */
export const isGone = (caught: unknown): boolean => caught instanceof ApiError && caught.status === 410;

/** @param retryAfter the header of that name: seconds; a date, which no API server sends, counts as absent */
export function refusalOf(action: string, status: number, body: string, retryAfter?: string | null): ApiError {
  const reason = reasonIn(body) || reasonOfStatus(status);
  const seconds = /^\d{1,6}$/.test(retryAfter ?? "") ? Number(retryAfter) : undefined;
  return new ApiError({
    action,
    status,
    is: `the API server answers ${status}: ${reason}${wantedAfter(action, status)}`,
    ...(seconds === undefined ? {} : { retryAfterMs: Math.min(seconds * 1000, longestRetryAfterMs) }),
  });
}

function wantedAfter(action: string, status: number): string {
  if (status === 401) return ", wanted a token or a certificate that it accepts";
  return status === 403 ? `, wanted the right to ${action}` : "";
}

/** `message` of the Status that the server sends with a refusal. The page of a proxy is not quoted. */
function reasonIn(body: string): string {
  try {
    const value = parseJson(body);
    const message = isObject(value) ? value["message"] : undefined;
    return typeof message === "string" ? message.slice(0, maxReasonChars) : "";
  } catch {
    return "";
  }
}

const words: Readonly<Record<number, string>> = {
  400: "it takes the request for malformed",
  401: "it does not know who asks",
  403: "it is forbidden",
  404: "there is no such thing",
  409: "somebody else changed it",
  410: "that state is too old",
  429: "it has too many requests",
  503: "it is not ready",
  504: "it had no time",
};

const reasonOfStatus = (status: number): string => words[status] ?? "without a reason";
