/** Why a request is not answered, as a `Status` of Kubernetes says it. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  /** Seconds after which to try again. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, message: string, retryAfterS?: number) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

const reasons: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  408: "Timeout",
  409: "Conflict",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
};

/** meta/v1. */
export const statusOf = ({ status, message }: Pick<Refusal, "status" | "message">): object => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message,
  reason: reasons[status] ?? "Unknown",
  code: status,
});
