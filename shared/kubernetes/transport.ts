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
