import { reasonOf } from "../reason.ts";

export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the server's root, with the query: `/api/v1/nodes?limit=100`. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ApiAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  /** The chunks as they come. Leaving the loop drops the rest; reading ahead is bounded. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Sends requests and gives their answers, over connections of its own. */
export interface Transport extends AsyncDisposable {
  /**
   * Answers once the headers are there.
   * @param signal ends the request, and the answer while it is read
   * @throws what the signal was aborted with, or why there is no answer
   */
  request(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer>;
}

/** The middle of a sentence for errors of `node:net`, `node:tls`, `node:http2` and `fetch`. It quotes no header. */
export function transportReason(caught: unknown, server: string): string {
  const { code, message } = (caught ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  switch (code) {
    case "ECONNREFUSED":
    case "ConnectionRefused":
      return `nobody listens at ${server} (${code}), wanted the API server`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name in ${server} cannot be resolved (${code})`;
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `the certificate of ${server} is for another name (${message})`;
    // Also reported for a valid certificate if the node's clock is years behind.
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return `the certificate of ${server} does not hold at this time (${message}), wanted one that does, and the right time here`;
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
      return `the certificate of ${server} is not trusted (${message}), wanted one that the given CA signed`;
    default:
      return reasonOf(caught);
  }
}

/**
 * A time limit that is restarted whenever data arrives. At its end the request is aborted with a sentence that says
 * what was missing.
 */
export class Patience implements Disposable {
  readonly #silent = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  get signal(): AbortSignal {
    return this.#silent.signal;
  }

  /** Restarts the limit with this length. @param is the reason that is given at its end */
  last(ms: number, is: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#silent.abort(new Error(`the API server ${is}`)), ms);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
