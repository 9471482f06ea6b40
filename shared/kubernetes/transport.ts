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
  /** In the pieces in which it comes. Whoever stops reading gives the rest up; nothing is read ahead without bound. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Requests in, answers out, over whatever connections that takes. */
export interface Transport extends AsyncDisposable {
  /**
   * Answers once the headers are there.
   * @param signal ends the request, and the answer while it is read
   * @throws what the signal was aborted with, or why there is no answer
   */
  request(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer>;
}

/** What `node:net`, `node:tls`, `node:http2` and `fetch` throw, as the middle of a sentence. They quote no header. */
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
    // Also what a node's clock that is years behind makes of a good one.
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

/** A time limit that is set anew whenever something was heard. Whoever waits is aborted with a sentence that says for what. */
export class Patience implements Disposable {
  readonly #silent = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  get signal(): AbortSignal {
    return this.#silent.signal;
  }

  /** From now on it lasts this long. @param is what is the case at its end */
  last(ms: number, is: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#silent.abort(new Error(`the API server ${is}`)), ms);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
